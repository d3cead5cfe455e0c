#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "specllama/evidence.h"
#include "specllama/types.h"

namespace specllama {

// Tokens that a drafter proposes to follow a sequence: a main path, in which each token follows the
// one before, and branches where there is more than one candidate for a position.
//
// The two vectors of the main path have the same length: `push` adds to both.
struct Draft {
    struct BranchToken {
        Token token = kNoToken;
        Evidence evidence = {};
        // Number of tokens of the main path before its branch.
        int depth = 0;
        // Whether it continues the branch of the previous branch token; if not, it begins a branch.
        bool follows = false;
    };

    std::vector<Token> tokens;
    std::vector<Evidence> evidence;  // [i]: for tokens[i]
    // The branches, in any order. A branch may repeat tokens of the main path or of another branch.
    // Among candidates of one drafter for one position, the likelier comes first.
    std::vector<BranchToken> branches;

    // Tokens of the main path.
    int size() const { return static_cast<int>(tokens.size()); }
    bool empty() const { return tokens.empty(); }

    // Whether every token has evidence with a valid source, and every branch a valid depth.
    bool valid() const {
        const auto known = [](const Evidence& one) { return one.source <= Source::other; };
        if (evidence.size() != tokens.size() || !std::ranges::all_of(evidence, known)) return false;
        for (std::size_t i = 0; i < branches.size(); ++i) {
            const BranchToken& one = branches[i];
            if (!known(one.evidence) || one.depth < 0 || one.depth > size()) return false;
            if (one.follows && (i == 0 || branches[i - 1].depth != one.depth)) return false;
        }
        return true;
    }

    void clear() {
        tokens.clear();
        evidence.clear();
        branches.clear();
    }

    void push(Token token, const Evidence& why) {
        tokens.push_back(token);
        evidence.push_back(why);
    }

    // push_branch begins a branch after the first `depth` tokens of the main path; extend_branch
    // continues the branch of the branch token that was added last.
    void push_branch(int depth, Token token, const Evidence& why) {
        branches.push_back({token, why, depth, false});
    }
    void extend_branch(Token token, const Evidence& why) {
        branches.push_back({token, why, branches.empty() ? 0 : branches.back().depth, true});
    }
};

}  // namespace specllama
