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

// Probabilities that sum to 1, sorted by token; a token that is not listed has probability 0.
using Distribution = std::vector<Outcome>;

// The probability of a token.
double probability(const Distribution& distribution, Token token);

// The largest of its probabilities.
double highest(const Distribution& distribution);

// Writes softmax(logits / temperature) over the candidates, in which no token may occur twice.
void softmax(std::span<const Candidate> candidates, double temperature, Distribution& out);

// The natural logarithms of softmax(logits / temperature): of `token`, and of the k most likely
// tokens, the likeliest first. Minus infinity for a token that is not among the candidates.
TokenLogprobs log_softmax(std::span<const Candidate> candidates, double temperature, Token token,
                          int k);

// The same over a whole row [n_vocab] at temperature 1. Tokens that the model itself forbids (minus
// infinity) are no candidates.
TokenLogprobs log_softmax(std::span<const float> logits, Token token, int k);

}  // namespace specllama
