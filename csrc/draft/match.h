#pragma once

#include <cstddef>

#include "specllama/types.h"

namespace specllama {

// An earlier occurrence of the tokens that a text ends with.
struct Match {
    // How many tokens agree; 0: none was found, and there is no continuation.
    int length = 0;
    // What follows it in the text searched, to its end; not empty. Valid until that text changes.
    TokenSpan continuation;

    // Token i of a copy of what follows. A text that continues itself runs, past its end, into the
    // copy, and so repeats.
    Token token(std::size_t i) const { return continuation[i % continuation.size()]; }
};

// Shorter matches are left to the frequencies of n-grams, which predict as well and know how sure
// they are; but for those near a copy's end (Trail).
inline constexpr int kMinMatch = 4;
// Longer matches count as this long.
inline constexpr int kMaxMatch = 64;

// How many tokens both end with, at most kMaxMatch.
int common_suffix(TokenSpan a, TokenSpan b);

// Whether a comes before b in the order of last tokens, then of those before them, and so on for at
// most kMaxMatch: in this order a text's neighbours are those with which it shares the longest end.
bool backwards_less(TokenSpan a, TokenSpan b);

}  // namespace specllama
