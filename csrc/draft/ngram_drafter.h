#pragma once

#include <map>
#include <span>

#include "draft/drafter.h"
#include "draft/ngram_predictor.h"
#include "specllama/config.h"

namespace specllama {

// Drafts with one NGramPredictor per sequence, seeded with the prompt. What a request taught its
// tables goes with the request.
class NGramDrafter final : public Drafter {
 public:
    explicit NGramDrafter(const NGramOptions& options);

    void begin(SequenceId sequence, TokenSpan prompt) override;
    void propose(std::span<Proposal> proposals) override;
    void end(SequenceId sequence) override;

 private:
    struct Follower {
        NGramPredictor predictor;
        std::size_t n_seen = 0;  // tokens of the sequence taken in

        void follow(TokenSpan tokens);
    };

    NGramOptions options_;
    std::map<SequenceId, Follower> followers_;
};

}  // namespace specllama
