#pragma once

#include <string>
#include <vector>

#include "draft/ngram/match.h"
#include "specllama/error.h"
#include "specllama/types.h"

namespace specllama {

// Checks of arguments from Python. Both throw InvalidArgument.

inline void check_token(Token token) {
    if (token < 0)
        throw InvalidArgument("Token ids are 0 or more, not " + std::to_string(token) + ".");
}

// n: most tokens to draft.
inline void check_draft_length(int n) {
    if (n < 0 || n > kMaxSpecLength)
        throw InvalidArgument("n must be from 0 to " + std::to_string(kMaxSpecLength) + ", not " +
                              std::to_string(n) + ".");
}

// A token copied from a match, for Python. length: number of matching tokens before it.
struct MatchedToken {
    Token token;
    int length;
};

// The first n tokens copied from a match; none if there is no match.
inline std::vector<MatchedToken> copied(const Match& match, int n) {
    std::vector<MatchedToken> out;
    for (int i = 0; i < n && match.length > 0; ++i)
        out.push_back({match.token(i), match.length + i});
    return out;
}

}  // namespace specllama
