#pragma once

#include <span>
#include <vector>

#include "sample/candidates.h"
#include "specllama/types.h"

namespace specllama {

// The natural logarithms of softmax(logits / temperature): of `token`, and of the k most likely
// tokens, the likeliest first. Minus infinity for a token that is not among the candidates.
TokenLogprobs log_softmax(std::span<const Candidate> candidates, double temperature, Token token,
                          int k);

// The same over a whole row [n_vocab] at temperature 1. Tokens that the model itself forbids (minus
// infinity) are no candidates.
TokenLogprobs log_softmax(std::span<const float> logits, Token token, int k);

}  // namespace specllama
