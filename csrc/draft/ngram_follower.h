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
//
// Where other guesses may stand beside (Proposal::max_beside), what comes second most often does,
// and what other matches say where they first differ from the copy, the longest matches first.
class NGramFollower {
 public:
    // Throws InvalidArgument when an option is out of range.
    NGramFollower(const NGramOptions& options, TokenSpan reference);
    NGramFollower(const NGramFollower&) = delete;
    NGramFollower& operator=(const NGramFollower&) = delete;

    // All tokens of the sequence, which has only grown since.
    void follow(TokenSpan tokens);

    // Most matches beside a copy, and most tokens of each: what is right beside a trunk is right
    // for a while, but each of its tokens is decoded once more.
    static constexpr std::size_t kMaxRivals = 8;
    static constexpr std::size_t kRivalTokens = 16;

    // Adds to the proposal's draft.
    void draft(Proposal& proposal);

 private:
    bool draws(const Proposal& proposal) const {
        return !drawn_from_.empty() && proposal.max_drawn > 0;
    }
    void extend(Proposal& proposal);
    bool predict(Proposal& proposal);
    // The longest match that is long enough for the finders, and in which text.
    struct Found {
        const MatchFinder* text;
        Match match;
    };
    Found find() const;
    void enter_best();
    bool copy(Proposal& proposal) const;
    // A copy's tokens: how many there are of at most n, and what is known of them.
    std::size_t n_copied(const Found& found, std::size_t n) const;
    Evidence evidence(const Found& found, std::size_t i) const;
    void add_rivals(Proposal& proposal, int first) const;
    void step(Token token);

    NGramPredictor predictor_;
    MatchFinder own_;
    MatchFinder reference_;
    Trail trail_;
    std::vector<bool> broke_off_;           // [i]: whether token i was another than a copy had said
    std::vector<Distribution> drawn_from_;  // [i]: of its draft's token i, if it draws
};

}  // namespace specllama
