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

// Probabilities that sum to 1, sorted by token; tokens that are not listed have probability 0.
using Distribution = std::vector<Outcome>;

// The probability of a token.
double probability(const Distribution& distribution, Token token);

// The largest of its probabilities.
double highest(const Distribution& distribution);

// Writes softmax(logits / temperature) over the candidates. A token may occur only once.
void softmax(std::span<const Candidate> candidates, double temperature, Distribution& out);

// The natural logarithms of softmax(logits / temperature) for `token` and the k most likely tokens,
// the likeliest first. Minus infinity for a token that is not a candidate.
TokenLogprobs log_softmax(std::span<const Candidate> candidates, double temperature, Token token,
                          int k);

// The same over a whole row [n_vocab] at temperature 1. Tokens that the model itself forbids (minus
// infinity) are not candidates.
TokenLogprobs log_softmax(std::span<const float> logits, Token token, int k);

}  // namespace specllama
