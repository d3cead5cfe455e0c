#pragma once

#include <map>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "draft/match_finder.h"
#include "draft/ngram_predictor.h"
#include "specllama/config.h"

namespace specllama {

// Drafts what followed the same tokens before, in the sequence or in its reference text: where they
// are few, by the frequencies of an NGramPredictor; from kMinMatch tokens on, by
// copying from where the longest match was. A draft may begin with the one and go on with the
// other.
//
// What a request taught goes with the request.
class NGramDrafter final : public Drafter {
 public:
    explicit NGramDrafter(const NGramOptions& options);

    void begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

 private:
    // What is known of a sequence.
    struct Follower {
        NGramPredictor predictor;
        MatchFinder finder;
        MatchFinder reference;
        std::vector<Distribution> drawn_from;  // [i]: of its draft's token i, if it draws

        Follower(const NGramOptions& options, TokenSpan reference_tokens);
        void follow(TokenSpan tokens);
        void draft(Proposal& proposal);
        void extend(Proposal& proposal);
        bool draws(const Proposal& proposal) const {
            return !drawn_from.empty() && proposal.max_drawn > 0;
        }
        std::size_t predict(const Proposal& proposal,
                            std::span<NGramPredictor::Prediction> predictions);
        bool copy(Draft& draft, int max_tokens) const;
    };

    NGramOptions options_;
    std::map<SequenceId, Follower> followers_;
};

}  // namespace specllama
