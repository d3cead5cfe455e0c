#pragma once

#include <vector>

#include "specllama/types.h"

namespace specllama {

// Tokens that a drafter proposes to follow a sequence: a chain, each token after the one before.
struct Draft {
    std::vector<Token> tokens;
    // Per token, the drafter's own estimate in [0, 1] that the target agrees.
    std::vector<float> confidence;

    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    void clear() {
        tokens.clear();
        confidence.clear();
    }

    void push(Token token, float token_confidence) {
        tokens.push_back(token);
        confidence.push_back(token_confidence);
    }
};

}  // namespace specllama
