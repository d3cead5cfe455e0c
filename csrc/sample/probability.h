#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The sum of exp(logit - origin) over a row, to about six digits; infinite if a float cannot hold
// the partial sum of 1024 logits. `origin` must be finite; no logit may be a NaN.
double exp_sum(std::span<const float> logits, float origin);

// The softmax probability of a token in a row of logits, to about six digits. Drafters call it for
// every token, so it must be fast. No logit may be a NaN, and the token's own may not be minus
// infinity.
float probability(std::span<const float> logits, Token token);

}  // namespace specllama
