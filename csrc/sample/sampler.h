#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sample/candidates.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// The choice rule: argmax over the kept tokens of logit / T + gumbel(seed, position, token), which
// is a draw from the softmax at temperature T; T = 0 drops the noise.
//
// The noise is a pure function, so the target's token at a position is the same whether its logits
// were computed alone or inside a draft: the output does not depend on who drafts. (Coupling by
// common noise: Daliri, Musco, Suresh, "Coupling without communication and drafter-invariant
// speculative decoding", 2024, section 3.)
class Sampler {
 public:
    // Allocates for rows of n_vocab logits. Throws InvalidArgument when an option is out of range.
    Sampler(const SamplingOptions& options, std::size_t n_vocab);

    std::uint64_t seed() const { return seed_; }

    // The token that follows `context`, all tokens of the sequence so far. `logits` [n_vocab] are
    // changed where penalties and bias apply. kNoToken when they hold a NaN or nothing is left.
    // Allocates nothing, and keeps nothing: the same arguments give the same token.
    // Where logprobs are asked for, those of the chosen token are written to `logprobs`.
    Token choose(std::span<float> logits, TokenSpan context,
                 std::optional<TokenLogprobs>* logprobs = nullptr);

 private:
    Token choose_token(std::span<float> logits, TokenSpan context);
    TokenLogprobs processed(std::span<const float> logits, Token token);
    void penalise(std::span<float> logits, TokenSpan context);

    SamplingOptions options_;
    std::uint64_t seed_;
    bool penalises_;
    Candidates candidates_;
    std::vector<Token> recent_;
};

}  // namespace specllama
