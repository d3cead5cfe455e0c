#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The sum of exp(logit - highest) over a row, to some six digits. `highest` is the highest logit, a
// finite number; none may be a NaN.
double exp_sum(std::span<const float> logits, float highest);

// The probability that softmax gives a token of a row of logits, to some six digits: what a drafter
// wants to know of every token, so it must be quick. No logit may be a NaN, nor the token's own
// minus infinity.
float probability(std::span<const float> logits, Token token);

}  // namespace specllama
