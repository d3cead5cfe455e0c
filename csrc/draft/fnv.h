#pragma once

#include <cstdint>

#include "specllama/types.h"

namespace specllama {

// FNV-1a, 64 bits, over token ids: one xor and one multiplication per token.
// G. Fowler, L. C. Noll, K.-P. Vo; constants of the 64-bit version.
inline std::uint64_t fnv1a(TokenSpan tokens) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const Token token : tokens) {
        hash ^= static_cast<std::uint32_t>(token);
        hash *= 1099511628211ULL;
    }
    return hash;
}

}  // namespace specllama
