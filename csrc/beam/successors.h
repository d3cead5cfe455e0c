#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// A token that may come next, and the natural logarithm of its probability.
struct Successor {
    Token token = kNoToken;
    double logprob = 0;
};

// Writes the likeliest tokens of a row of logits [n_vocab] into `out`, which is not longer, the
// likeliest first, of equals the lowest id. Log-probabilities are good to some six digits, and the
// same bits for the same row. False if the row holds a NaN, or nothing finite.
bool best_successors(std::span<const float> logits, std::span<Successor> out);

}  // namespace specllama
