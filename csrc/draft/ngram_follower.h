#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "draft/match_finder.h"
#include "draft/ngram_predictor.h"
#include "draft/trail.h"
#include "specllama/config.h"

namespace specllama {

// Drafts what followed the same tokens before, in a sequence or in a text given with it. Where they
// are few it goes by the frequencies of an NGramPredictor, unless they stand where a copy broke off
// (Trail); from kMinMatch tokens on it copies from where the longest match was. A draft may begin
// by frequencies and go on with a copy.
class NGramFollower {
 public:
    // Throws InvalidArgument when an option is out of range.
    NGramFollower(const NGramOptions& options, TokenSpan reference);
    NGramFollower(const NGramFollower&) = delete;
    NGramFollower& operator=(const NGramFollower&) = delete;

    // All tokens of the sequence, which has only grown since.
    void follow(TokenSpan tokens);

    // Adds to the proposal's draft.
    void draft(Proposal& proposal);

 private:
    bool draws(const Proposal& proposal) const {
        return !drawn_from_.empty() && proposal.max_drawn > 0;
    }
    void extend(Proposal& proposal);
    std::size_t predict(const Proposal& proposal,
                        std::span<NGramPredictor::Prediction> predictions);
    // The longest match that is long enough for the finders, and in which text.
    struct Found {
        const MatchFinder* text;
        Match match;
    };
    Found find() const;
    void look();
    bool copy(Draft& draft, int max_tokens) const;
    void step(Token token);

    NGramPredictor predictor_;
    MatchFinder own_;
    MatchFinder reference_;
    Trail trail_;
    std::vector<bool> broke_off_;           // [i]: whether token i of the sequence did so to a copy
    std::vector<Distribution> drawn_from_;  // [i]: of its draft's token i, if it draws
};

}  // namespace specllama
