#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The sum of exp(logit - origin) over a row, to some six digits; infinite where a float cannot hold
// that of 1024 of them. `origin` is a finite number; no logit may be a NaN.
double exp_sum(std::span<const float> logits, float origin);

// The probability that softmax gives a token of a row of logits, to some six digits: what a drafter
// wants to know of every token, so it must be quick. No logit may be a NaN, nor the token's own
// minus infinity.
float probability(std::span<const float> logits, Token token);

}  // namespace specllama
