#pragma once

#include <span>
#include <vector>

#include "sample/candidates.h"
#include "specllama/types.h"

namespace specllama {

struct Outcome {
    Token token;
    double probability;
};

// Probabilities that sum to 1, in order of tokens; those of all other tokens are 0.
using Distribution = std::vector<Outcome>;

// The probability of a token.
double probability(const Distribution& distribution, Token token);

// The largest of its probabilities.
double highest(const Distribution& distribution);

// Writes softmax(logits / temperature) over the candidates; none of them twice.
void softmax(std::span<const Candidate> candidates, double temperature, Distribution& out);

}  // namespace specllama
