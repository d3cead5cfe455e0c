#pragma once

#include <vector>

#include "sample/distribution.h"
#include "specllama/types.h"

namespace specllama {

// Tokens that a drafter proposes to follow a sequence: a chain, each token after the one before.
struct Draft {
    std::vector<Token> tokens;
    // Per token, the drafter's own estimate in [0, 1] that the target agrees.
    std::vector<float> confidence;
    // Per token, the distribution it was drawn from; null for a token without alternative. Needed
    // by Sampler::verify where drafts are drawn; the drafter keeps it until its next proposal.
    std::vector<const Distribution*> drawn_from;

    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    void clear() {
        tokens.clear();
        confidence.clear();
        drawn_from.clear();
    }

    void push(Token token, float token_confidence, const Distribution* token_drawn_from = nullptr) {
        tokens.push_back(token);
        confidence.push_back(token_confidence);
        drawn_from.push_back(token_drawn_from);
    }
};

}  // namespace specllama
