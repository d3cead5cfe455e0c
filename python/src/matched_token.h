#pragma once

#include <vector>

#include "draft/ngram/match.h"
#include "specllama/types.h"

namespace specllama {

// A token copied from a match, as Python sees it. length: how many tokens before it match.
struct MatchedToken {
    Token token;
    int length;
};

// The first n tokens that are copied from a match; none if there is no match.
inline std::vector<MatchedToken> copied(const Match& match, int n) {
    std::vector<MatchedToken> out;
    for (int i = 0; i < n && match.length > 0; ++i)
        out.push_back({match.token(i), match.length + i});
    return out;
}

}  // namespace specllama
