#pragma once

#include <algorithm>
#include <cstddef>

#include "specllama/types.h"

namespace specllama {

// An earlier occurrence of the tokens that a text ends with.
struct Match {
    // Number of tokens that agree; 0: no match was found, and there is no continuation.
    int length = 0;
    // All tokens after the match in the text searched; not empty. Valid until that text changes.
    TokenSpan continuation;

    // Token i of a copy of the continuation. Past its end the copy repeats: a text that copies from
    // itself goes on with what it has just copied.
    Token token(std::size_t i) const { return continuation[i % continuation.size()]; }
};

// Shorter matches are left to the frequencies of n-grams, which predict as well and know how sure
// they are. Only near the end of a broken-off copy are shorter matches used (CopyCursor).
inline constexpr int kMinMatch = 4;
// Longer matches count as this long.
inline constexpr int kMaxMatch = 64;

// Number of last tokens that a and b have in common, at most kMaxMatch.
inline int common_suffix(TokenSpan a, TokenSpan b) {
    const auto n = std::min({a.size(), b.size(), std::size_t{kMaxMatch}});
    const auto end = a.rbegin() + static_cast<std::ptrdiff_t>(n);
    return static_cast<int>(std::mismatch(a.rbegin(), end, b.rbegin()).first - a.rbegin());
}

// Whether a comes before b when they are compared from the last token backwards, at most kMaxMatch
// tokens. In this order a text stands beside those that share the longest end with it.
inline bool backwards_less(TokenSpan a, TokenSpan b) {
    const auto n = static_cast<std::size_t>(common_suffix(a, b));
    if (n == kMaxMatch || n == b.size()) return false;
    return n == a.size() || a[a.size() - 1 - n] < b[b.size() - 1 - n];
}

}  // namespace specllama
