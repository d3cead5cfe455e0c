#pragma once

#include <cstddef>
#include <span>

#include "specllama/types.h"

namespace specllama {

// Logits of which argmax can tell the largest beside.
inline constexpr std::size_t kPeakLogits = 128;

// The token of the largest logit, the lowest id among equals, as llama.cpp's greedy sampler has it.
//
// logits: one row, [n_vocab]. Returns kNoToken when the row is empty or holds a NaN.
// peaks: none, or room for the largest of each kPeakLogits of them in turn, the last of fewer.
Token argmax(std::span<const float> logits, std::span<float> peaks = {});

}  // namespace specllama
