#pragma once

#include <string>

#include "specllama/error.h"
#include "specllama/types.h"

namespace specllama {

// Checks of what Python passes. Both throw InvalidArgument.

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

}  // namespace specllama
