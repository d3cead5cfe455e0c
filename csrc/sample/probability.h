#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The probability that softmax gives a token of a row of logits, to some six digits: what a drafter
// wants to know of every token, so it must be quick. No logit may be a NaN, nor the token's own
// minus infinity.
float probability(std::span<const float> logits, Token token);

}  // namespace specllama
