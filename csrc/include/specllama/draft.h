#pragma once

#include <algorithm>
#include <vector>

#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// The library's own: probabilities of tokens.
struct Outcome;
using Distribution = std::vector<Outcome>;

// Tokens that a drafter proposes to follow a sequence: a chain, each token after the one before.
//
// Its three vectors are of one length: `push` adds to all of them.
struct Draft {
    std::vector<Token> tokens;
    std::vector<Evidence> evidence;  // [i]: for tokens[i]
    // Per token, the distribution it was drawn from; null for a token without alternative, which
    // every drafter may propose. Needed to verify what the library's own drafters have drawn; the
    // drafter keeps it until its next proposal.
    std::vector<const Distribution*> drawn_from;

    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    // Whether each token has its evidence, of a source there is.
    bool whole() const {
        return evidence.size() == tokens.size() && drawn_from.size() == tokens.size() &&
               std::ranges::all_of(evidence,
                                   [](const Evidence& one) { return one.source <= Source::other; });
    }

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
