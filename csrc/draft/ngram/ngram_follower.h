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

// Drafts for one sequence what followed the same tokens before, in itself or in a text given with
// it. While the last tokens are what a copy predicted, it goes on with that copy. Otherwise it
// looks for the longest context that the sequence ends with and that occurred before; among equally
// long ones, for one near the place where the last copy broke off (CopyCursor). It copies from
// there, or from any context of kMinMatch tokens or more. Without such a context it drafts the most
// frequent next token (NGramPredictor), until the drafted tokens make a match. Copied tokens that
// had themselves broken off a copy are marked (Evidence::confidence 0).
//
// Where other guesses may stand beside the main path (DraftRequest::max_alternatives), they are the
// second most frequent token, and what other matches have where they first differ from the copy,
// the longest matches first.
class NGramFollower {
 public:
    // Throws InvalidArgument when an option is out of range.
    NGramFollower(const NGramOptions& options, TokenSpan reference);
    NGramFollower(const NGramFollower&) = delete;
    NGramFollower& operator=(const NGramFollower&) = delete;

    // Takes in all tokens of the sequence, which may only have grown since the last call.
    void follow(TokenSpan tokens);

    // Most matches drafted beside a copy, and most tokens of each. A branch that is right stays
    // right for a while, but its tokens must be decoded once more to be kept.
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
    // A match and the text that it is in. find() returns the longest that the finders know.
    struct Found {
        const MatchFinder* text;
        Match match;
    };
    Found find() const;
    void start_best_copy();
    bool copy(DraftRequest& proposal, int n_most) const;
    // Of a copy: how many tokens it has, n at most, and the evidence for its token i.
    std::size_t n_copied(const Found& found, std::size_t n) const;
    Evidence evidence(const Found& found, std::size_t i) const;
    void add_alternatives(DraftRequest& proposal, int first) const;
    void step(Token token);

    NGramPredictor predictor_;
    MatchFinder own_;
    MatchFinder reference_;
    CopyCursor<MatchFinder> cursor_;
    std::vector<bool> broke_off_;           // [i]: whether token i is not what a copy predicted
    std::vector<Distribution> drawn_from_;  // [i]: for token i of the draft; empty: it never draws
};

}  // namespace specllama
