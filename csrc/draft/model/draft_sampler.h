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

// Chooses the tokens that a model drafts from the model's logits: by the target's choice rule and
// noise, but with the draft model's temperature, top_k, top_p and min_p where these are set. There
// is no grammar.
class DraftSampler {
 public:
    // n_vocab: tokens of the vocabulary. Throws InvalidArgument if an option is out of range.
    DraftSampler(const DraftModelOptions& options, std::size_t n_vocab);

    // A new request of this sequence begins. The distributions that its drafts point to are void.
    void begin(SequenceId sequence);

    // Chooses the token after `tokens` (the sequence's, then the draft's) from the logits
    // [n_vocab], which are changed. Adds it to both, with up to proposal.max_alternatives other
    // guesses beside it in the draft. confidence: how likely a token of these logits is right;
    // none: its probability. Returns false if nothing is added: the token is less sure than p_min,
    // all are forbidden, or the logits hold a NaN (then proposal.error is set). The distribution of
    // a drawn token, to which the draft points, remains until the sequence's next draft.
    bool extend(DraftRequest& proposal, std::span<float> logits, std::vector<Token>& tokens,
                std::optional<float> confidence = {});

 private:
    // What belongs to a sequence's request.
    struct Request {
        std::optional<Sampler> sampler;        // made at the first draft
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
