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

// 32 well-mixed bits of a hash: FNV-1a leaves its last token in the low bits and little of it in
// the high ones.
inline std::uint32_t fold(std::uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ULL;
    return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace specllama
