#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/core_drafter.h"
#include "draft/ngram/copy_cursor.h"
#include "draft/ngram/match_finder.h"
#include "draft/ngram/ngram_predictor.h"
#include "specllama/ngram_options.h"

namespace specllama {

// Drafts for one sequence the tokens that followed the same context before, in the sequence or in a
// reference text. While a copy predicts the last tokens correctly, it is continued. Otherwise the
// longest context with an earlier occurrence is used; among equally long ones, one near the place
// where the last copy broke off (CopyCursor). Other places need a context of at least kMinMatch
// tokens. Without such a context the most frequent next token is drafted (NGramPredictor), until
// the drafted tokens make a match. Copied tokens where an earlier copy broke off are marked
// (Evidence::confidence 0).
//
// Alternatives to the main path (DraftRequest::max_alternatives) are the second most frequent
// token, and the tokens of other matches from their first difference to the copy on, the longest
// matches first.
class NGramFollower {
 public:
    // Throws InvalidArgument when an option is out of range.
    NGramFollower(const NGramOptions& options, TokenSpan reference);
    NGramFollower(const NGramFollower&) = delete;
    NGramFollower& operator=(const NGramFollower&) = delete;

    // Reads the new tokens of the sequence, which may only have grown since the last call.
    void follow(TokenSpan tokens);

    // Most matches drafted as alternatives to a copy, and most tokens of each. A branch that is
    // right usually stays right for some tokens, but they must be decoded again to be kept.
    static constexpr std::size_t kMaxAlternatives = 8;
    static constexpr std::size_t kAlternativeTokens = 16;

    // Extends the proposal's draft.
    void draft(DraftRequest& proposal);

 private:
    bool draws(const DraftRequest& proposal) const {
        return !drawn_from_.empty() && proposal.max_drawn > 0;
    }
    void extend(DraftRequest& proposal);
    bool predict(DraftRequest& proposal);
    // A match and its text. find() returns the longest match of both finders.
    struct Found {
        const MatchFinder* text;
        Match match;
    };
    Found find() const;
    void start_best_copy();
    bool copy(DraftRequest& proposal, int n_most) const;
    // The number of tokens of a copy, at most n; and the evidence for its token i.
    std::size_t n_copied(const Found& found, std::size_t n) const;
    Evidence evidence(const Found& found, std::size_t i) const;
    void add_alternatives(DraftRequest& proposal, int first) const;
    void step(Token token);

    NGramPredictor predictor_;
    MatchFinder own_;
    MatchFinder reference_;
    CopyCursor<MatchFinder> cursor_;
    std::vector<bool> broke_off_;           // [i]: whether token i is not what a copy predicted
    std::vector<Distribution> drawn_from_;  // [i]: for token i of the draft; empty: never draws
};

}  // namespace specllama
