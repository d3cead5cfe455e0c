#pragma once

#include <vector>

#include "draft/evidence.h"
#include "sample/distribution.h"
#include "specllama/types.h"

namespace specllama {

// Tokens that a drafter proposes to follow a sequence: a chain, each token after the one before.
struct Draft {
    std::vector<Token> tokens;
    std::vector<Evidence> evidence;  // [i]: for tokens[i]
    // Per token, the distribution it was drawn from; null for a token without alternative. Needed
    // by Sampler::verify where drafts are drawn; the drafter keeps it until its next proposal.
    std::vector<const Distribution*> drawn_from;

    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    void clear() {
        tokens.clear();
        evidence.clear();
        drawn_from.clear();
    }

    // Takes back all but the first n tokens, n at most size().
    void truncate(int n) {
        tokens.resize(n);
        evidence.resize(n);
        drawn_from.resize(n);
    }

    void push(Token token, const Evidence& why, const Distribution* token_drawn_from = nullptr) {
        tokens.push_back(token);
        evidence.push_back(why);
        drawn_from.push_back(token_drawn_from);
    }
};

}  // namespace specllama
