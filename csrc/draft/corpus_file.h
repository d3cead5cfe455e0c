#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fnv.h"

// The format of a corpus file: tokenized texts, and where every kMinMatch tokens of them stand, to
// be searched in place. All numbers are little-endian and lie at multiples of their size:
//
//   Header
//   int32  tokens[n_tokens]       kNoToken; each text, with kNoToken behind it
//   uint32 starts[n_buckets + 1]  where each bucket begins in `entries`; the last one: n_entries
//   uint32 entries[n_entries]     indices into `tokens`
//
// There is an entry for every token with kMinMatch others of its text before it. Its bucket is
// bucket_of(those, n_buckets); within one, entries are in the order of backwards_less of all that
// comes before them, equal ones in the order of the texts.
namespace specllama::corpus_file {

static_assert(std::endian::native == std::endian::little);

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t n_vocab;     // token ids are below
    std::uint64_t vocabulary;  // Vocab::text_fingerprint
    std::uint64_t n_texts;
    std::uint64_t n_tokens;  // kNoToken between texts included
    std::uint64_t n_buckets;
    std::uint64_t n_entries;
    std::uint64_t content_hash;  // FNV-1a over the 32-bit words behind the header
    std::uint64_t header_hash;   // FNV-1a over the bytes of the header before this

    std::uint64_t hash() const {
        return fnv1a({reinterpret_cast<const char*>(this), offsetof(Header, header_hash)});
    }
};
static_assert(sizeof(Header) == 72);

inline constexpr std::array<char, 8> kMagic = {'s', 'p', 'e', 'c', 'c', 'o', 'r', 'p'};
inline constexpr std::uint32_t kVersion = 1;

// 2.3 GiB: a file is read as a whole when it is opened, to be checked.
inline constexpr std::size_t kMaxTokens = std::size_t{1} << 28;

// About: so a token takes 4 bytes itself, 4 for its entry and 1 for its bucket.
inline constexpr std::size_t kEntriesPerBucket = 4;

// Of words behind the header; `hash`: of those before them.
inline std::uint64_t hash_words(std::span<const std::byte> bytes, std::uint64_t hash = kFnvBasis) {
    return fnv1a({reinterpret_cast<const Token*>(bytes.data()), bytes.size() / sizeof(Token)},
                 hash);
}

}  // namespace specllama::corpus_file
