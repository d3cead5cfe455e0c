#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// The library's own: probabilities of tokens.
struct Outcome;
using Distribution = std::vector<Outcome>;

// Tokens that a drafter proposes to follow a sequence: a trunk, each token after the one before,
// and, where there is more than one guess at a position, branches beside it.
//
// The trunk's three vectors are of one length: `push` adds to all of them.
struct Draft {
    // A token that may come in another's place.
    struct Side {
        Token token = kNoToken;
        Evidence evidence = {};
        const Distribution* drawn_from = nullptr;
        // How many tokens of the trunk come before its branch.
        int depth = 0;
        // Whether it comes after the side token before it; else it is the first of its branch.
        bool follows = false;
    };

    std::vector<Token> tokens;
    std::vector<Evidence> evidence;  // [i]: for tokens[i]
    // Per token, the distribution it was drawn from; null for a token without alternative, which
    // every drafter may propose. Needed to verify what the library's own drafters have drawn; the
    // drafter keeps it until its next proposal.
    std::vector<const Distribution*> drawn_from;
    // In whatever order; those that begin alike may share tokens or say them twice. Of one drafter
    // and one place, the likelier first.
    std::vector<Side> sides;

    // Of the trunk.
    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    // Whether a token of the trunk was drawn from a distribution.
    bool drawn() const {
        return std::ranges::any_of(drawn_from, [](const Distribution* from) { return from; });
    }

    // Whether each token has its evidence, of a source there is, and each branch its place.
    bool whole() const {
        const auto known = [](const Evidence& one) { return one.source <= Source::other; };
        if (evidence.size() != tokens.size() || drawn_from.size() != tokens.size()) return false;
        if (!std::ranges::all_of(evidence, known)) return false;
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const Side& side = sides[i];
            if (!known(side.evidence) || side.depth < 0 || side.depth > size()) return false;
            if (side.follows && (i == 0 || sides[i - 1].depth != side.depth)) return false;
        }
        return true;
    }

    void clear() {
        tokens.clear();
        evidence.clear();
        drawn_from.clear();
        sides.clear();
    }

    // Takes back all but the first n tokens of the trunk, n at most size(), and what branches off
    // behind them.
    void truncate(int n) {
        std::erase_if(sides, [n](const Side& side) { return side.depth >= n; });
        tokens.resize(n);
        evidence.resize(n);
        drawn_from.resize(n);
    }

    void push(Token token, const Evidence& why, const Distribution* token_drawn_from = nullptr) {
        tokens.push_back(token);
        evidence.push_back(why);
        drawn_from.push_back(token_drawn_from);
    }

    // A token after the first `depth` of the trunk, beside what comes there; and one that goes on
    // from the side token that was added last.
    void push_side(int depth, Token token, const Evidence& why,
                   const Distribution* token_drawn_from = nullptr) {
        sides.push_back({token, why, token_drawn_from, depth, false});
    }
    void push_behind_side(Token token, const Evidence& why) {
        sides.push_back({token, why, nullptr, sides.empty() ? 0 : sides.back().depth, true});
    }
};

}  // namespace specllama
