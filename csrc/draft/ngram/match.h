#pragma once

#include <algorithm>
#include <cstddef>

#include "specllama/types.h"

namespace specllama {

// An earlier occurrence of the last tokens of a text.
struct Match {
    // Number of tokens that agree; 0: no match and no continuation.
    int length = 0;
    // All tokens after the match in the searched text; not empty. Valid until that text changes.
    TokenSpan continuation;

    // Token i of a copy of the continuation. After its end the copy repeats: a text that copies
    // from itself continues with what it has just copied.
    Token token(std::size_t i) const { return continuation[i % continuation.size()]; }
};

// For shorter matches, n-gram frequencies predict equally well and give a confidence. Shorter
// matches are used only near the place where a copy broke off (CopyCursor).
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
// tokens. In this order, texts with the longest common end are neighbours.
inline bool backwards_less(TokenSpan a, TokenSpan b) {
    const auto n = static_cast<std::size_t>(common_suffix(a, b));
    if (n == kMaxMatch || n == b.size()) return false;
    return n == a.size() || a[a.size() - 1 - n] < b[b.size() - 1 - n];
}

}  // namespace specllama
