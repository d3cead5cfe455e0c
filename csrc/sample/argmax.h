#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "specllama/types.h"

namespace specllama {

// Logits per part of a row; the last part may be shorter. With the largest logit of each part (its
// peak), most of a vocabulary can be skipped.
inline constexpr std::size_t kPartLogits = 128;

inline std::size_t n_parts(std::size_t n_logits) {
    return (n_logits + kPartLogits - 1) / kPartLogits;
}

inline std::span<const float> part(std::span<const float> logits, std::size_t i) {
    const auto from = logits.subspan(i * kPartLogits);
    return from.first(std::min(kPartLogits, from.size()));
}

// The token of the largest logit, the lowest id among equals, as in llama.cpp's greedy sampler.
//
// logits: one row, [n_vocab]. Returns kNoToken when the row is empty, or holds a NaN or
// plus infinity.
// peaks: empty, or [n_parts(n_vocab)], which receives the peak of each part.
Token argmax(std::span<const float> logits, std::span<float> peaks = {});

}  // namespace specllama
