#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fnv.h"

// The format of a corpus file: tokenized texts and an index of every run of kMinMatch tokens, which
// is searched in place. All numbers are little-endian and aligned to their size:
//
//   Header
//   int32  tokens[n_tokens]       kNoToken; then each text, with kNoToken after it
//   uint32 starts[n_buckets + 1]  where each bucket begins in `entries`; the last one: n_entries
//   uint32 entries[n_entries]     indices into `tokens`
//
// Each token with at least kMinMatch tokens of its text before it has an entry, in bucket
// bucket_of(the last kMinMatch of these, n_buckets). Within a bucket, entries are sorted by
// backwards_less of all tokens before them. Equal entries keep the order of the texts.
namespace specllama::corpus_file {

static_assert(std::endian::native == std::endian::little);

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t n_vocab;     // all token ids are less than this
    std::uint64_t vocabulary;  // Vocab::text_fingerprint
    std::uint64_t n_texts;
    std::uint64_t n_tokens;  // markers (kNoToken) included
    std::uint64_t n_buckets;
    std::uint64_t n_entries;
    std::uint64_t content_hash;  // FNV-1a over the 32-bit words after the header
    std::uint64_t header_hash;   // FNV-1a over the preceding bytes of the header

    std::uint64_t hash() const {
        return fnv1a({reinterpret_cast<const char*>(this), offsetof(Header, header_hash)});
    }
};
static_assert(sizeof(Header) == 72);

inline constexpr std::array<char, 8> kMagic = {'s', 'p', 'e', 'c', 'c', 'o', 'r', 'p'};
inline constexpr std::uint32_t kVersion = 1;

// A file of this many tokens has 2.3 GiB, which are read and checked when it is opened.
inline constexpr std::size_t kMaxTokens = std::size_t{1} << 28;

// On average. A token then takes 9 bytes: 4 for its id, 4 for its entry and 1 for its part of a
// bucket.
inline constexpr std::size_t kEntriesPerBucket = 4;

// FNV-1a over 32-bit words after the header. `hash`: hash of the preceding words.
inline std::uint64_t hash_words(std::span<const std::byte> bytes, std::uint64_t hash = kFnvBasis) {
    return fnv1a({reinterpret_cast<const Token*>(bytes.data()), bytes.size() / sizeof(Token)},
                 hash);
}

}  // namespace specllama::corpus_file
