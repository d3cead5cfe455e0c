#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The choice rule: the token that the target takes given its logits. Greedy: the largest logit,
// the lowest id among equals, as llama.cpp's greedy sampler does.
//
// logits: one row, [n_vocab]. Returns kNoToken when the row is empty or holds a NaN.
Token choose(std::span<const float> logits);

}  // namespace specllama
