#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// Internal to the library: probabilities of tokens.
struct Outcome;
using Distribution = std::vector<Outcome>;

// Tokens that a drafter proposes to follow a sequence: a trunk, in which each token follows the one
// before, and branches beside it where there is more than one guess at a position.
//
// The trunk's three vectors have the same length: `push` adds to all of them.
struct Draft {
    // A token of a branch.
    struct Side {
        Token token = kNoToken;
        Evidence evidence = {};
        const Distribution* drawn_from = nullptr;
        // Number of trunk tokens before its branch.
        int depth = 0;
        // Whether it continues the branch of the side token before it; if not, it begins a branch.
        bool follows = false;
    };

    std::vector<Token> tokens;
    std::vector<Evidence> evidence;  // [i]: for tokens[i]
    // [i]: distribution that tokens[i] was drawn from; null: the token had no alternative. Any
    // drafter may leave it null; it is needed to verify tokens that the library's own drafters have
    // drawn. The drafter keeps the distribution until its next proposal.
    std::vector<const Distribution*> drawn_from;
    // The branches, in any order. A branch may repeat tokens of the trunk or of another branch.
    // Among guesses of one drafter at one position, the likelier comes first.
    std::vector<Side> sides;

    // Tokens of the trunk.
    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    // Whether a token of the trunk was drawn from a distribution.
    bool drawn() const {
        return std::ranges::any_of(drawn_from, [](const Distribution* from) { return from; });
    }

    // Whether every token has evidence with a valid source, and every branch a valid place.
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

    // Cuts the trunk to its first n tokens, n at most size(), and removes the branches that leave
    // it after n tokens or later.
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

    // push_side begins a branch after the first `depth` tokens of the trunk; push_behind_side
    // continues the branch of the side token that was added last.
    void push_side(int depth, Token token, const Evidence& why,
                   const Distribution* token_drawn_from = nullptr) {
        sides.push_back({token, why, token_drawn_from, depth, false});
    }
    void push_behind_side(Token token, const Evidence& why) {
        sides.push_back({token, why, nullptr, sides.empty() ? 0 : sides.back().depth, true});
    }
};

}  // namespace specllama
