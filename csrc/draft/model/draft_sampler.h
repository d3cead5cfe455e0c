#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "draft/core_drafter.h"
#include "sample/distribution.h"
#include "sample/sampler.h"
#include "specllama/session_options.h"

namespace specllama {

// Chooses a draft model's tokens from its logits, with the target's choice rule and noise, but
// without a grammar. The draft model's temperature, top_k, top_p and min_p apply where they are
// set.
class DraftSampler {
 public:
    // n_vocab: size of the vocabulary. Throws InvalidArgument if an option is out of range.
    DraftSampler(const DraftModelOptions& options, std::size_t n_vocab);

    // Begins a new request of this sequence. Distributions of its earlier drafts become invalid.
    void begin(SequenceId sequence);

    // Chooses the token after `tokens` (the sequence's, then the draft's) from the logits
    // [n_vocab], which are changed. Adds it to `tokens` and to the draft, there with up to
    // proposal.max_alternatives alternatives. confidence: the probability that the token is right;
    // none: its probability by these logits. Returns false if nothing is added: the confidence is
    // below p_min, all tokens are forbidden, or the logits contain a NaN (then proposal.error is
    // set). The draft points to the distribution of a drawn token, which stays valid until the
    // sequence's next draft.
    bool extend(DraftRequest& proposal, std::span<float> logits, std::vector<Token>& tokens,
                std::optional<float> confidence = {});

 private:
    // State of a sequence's request.
    struct Request {
        std::optional<Sampler> sampler;        // created with the first draft
        std::vector<Distribution> drawn_from;  // [i]: for token i of the draft
    };

    Sampler sampler_like(const Sampler& target) const;
    bool draw(DraftRequest& proposal, std::span<float> logits, TokenSpan tokens,
              std::optional<float> known_confidence);

    DraftModelOptions options_;
    std::size_t n_vocab_;
    std::map<SequenceId, Request> requests_;
};

}  // namespace specllama
