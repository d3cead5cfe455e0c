#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "draft/match_finder.h"
#include "draft/ngram_predictor.h"
#include "draft/trail.h"
#include "specllama/config.h"
#include "specllama/drafter.h"

namespace specllama {

// Drafts for one sequence what followed the same tokens before, in itself or in a text given with
// it. While the last tokens were what a copy had said, it goes on with that copy. Else it looks for
// the longest context that the sequence ends with and that stood before; among equals for one near
// the place where the last copy broke off (Trail). From there, or from a context of kMinMatch
// tokens and more, it copies; else it says what came most often (NGramPredictor), until that makes
// a match. Tokens copied that had themselves broken off a copy are marked (Evidence::confidence 0).
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
    void enter_best();
    bool copy(Draft& draft, int max_tokens) const;
    void step(Token token);

    NGramPredictor predictor_;
    MatchFinder own_;
    MatchFinder reference_;
    Trail trail_;
    std::vector<bool> broke_off_;           // [i]: whether token i was another than a copy had said
    std::vector<Distribution> drawn_from_;  // [i]: of its draft's token i, if it draws
};

}  // namespace specllama
