#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// The token of the largest logit, the lowest id among equals, as llama.cpp's greedy sampler has it.
//
// logits: one row, [n_vocab]. Returns kNoToken when the row is empty or holds a NaN.
Token argmax(std::span<const float> logits);

}  // namespace specllama
