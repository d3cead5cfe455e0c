#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "specllama/types.h"

namespace specllama {

// FNV-1a, 64 bits: G. Fowler, L. C. Noll, K.-P. Vo; constants of the 64-bit version. The same on
// every machine.
inline constexpr std::uint64_t kFnvBasis = 14695981039346656037ULL;
inline constexpr std::uint64_t kFnvPrime = 1099511628211ULL;

// Hashes token ids, with one xor and one multiplication per token. hash: hash of the preceding
// tokens.
inline std::uint64_t fnv1a(TokenSpan tokens, std::uint64_t hash = kFnvBasis) {
    for (const Token token : tokens) {
        hash ^= static_cast<std::uint32_t>(token);
        hash *= kFnvPrime;
    }
    return hash;
}

// The same for bytes.
inline std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnvBasis) {
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
    return hash;
}

// 32 well-mixed bits of a hash, since in FNV-1a the last token hardly affects the high bits.
inline std::uint32_t fold(std::uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ULL;
    return static_cast<std::uint32_t>(hash >> 32);
}

// Index of the bucket of these tokens, of n buckets. hash: hash of other data that determines the
// bucket.
inline std::size_t bucket_of(TokenSpan tokens, std::size_t n, std::uint64_t hash = kFnvBasis) {
    return std::uint64_t{fold(fnv1a(tokens, hash))} * n >> 32;
}

}  // namespace specllama
