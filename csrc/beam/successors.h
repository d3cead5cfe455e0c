#pragma once

#include <span>

#include "specllama/types.h"

namespace specllama {

// A token that may come next, and the natural logarithm of its probability.
struct Successor {
    Token token = kNoToken;
    double logprob = 0;
};

// Fills `out`, at most n_vocab long, with the likeliest tokens of a row of logits [n_vocab], the
// likeliest first, of equals the lowest id. Log-probabilities are correct to about six digits, and
// have the same bits for the same row. Returns false if the row holds a NaN or nothing finite.
bool best_successors(std::span<const float> logits, std::span<Successor> out);

}  // namespace specllama
