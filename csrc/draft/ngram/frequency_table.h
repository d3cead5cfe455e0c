#pragma once

#include <cstddef>
#include <cstdint>

#include "draft/ngram/index_map.h"
#include "draft/ngram/pool.h"
#include "sample/distribution.h"
#include "specllama/types.h"

namespace specllama {

// Counts how often each token followed each context. Contexts are identified by their hashes.
//
// Holds at most `capacity` (context, token) pairs: when it is full, the least recently updated
// contexts are evicted, one at a time. Operations take constant time on average, except
// `frequencies`, and `forget` of a context's best continuation, which visit all continuations of
// the context.
class FrequencyTable {
 public:
    // The most frequent continuation of a context; among equals, the most recent.
    struct Best {
        Token token = kNoToken;
        std::uint32_t count = 0;
        std::uint32_t total = 0;  // counts of all continuations of the context
    };

    // capacity: number of pairs, at least 1.
    explicit FrequencyTable(std::size_t capacity) : contexts_(capacity), continuations_(capacity) {}

    // Maximum number of bytes of one pair, including its part of the hash tables: its two nodes,
    // and two hash slots at the lowest load of 3/8.
    static constexpr std::size_t kBytesPerPair = 32 + 24 + 2 * 8 * 8 / 3 + 1;

    // Counts one occurrence of `token` after `context`, at `position`. Positions must not decrease.
    void count(std::uint64_t context, Token token, std::uint32_t position);

    // Undoes one count made at `position`. Does nothing if the context has been evicted since.
    void forget(std::uint64_t context, Token token, std::uint32_t position);

    // token is kNoToken when the context is unknown. Never allocates.
    Best best(std::uint64_t context) const;

    // The most frequent continuation other than the best, among the kMaxAlternatives added last;
    // token is kNoToken when there is none. Never allocates.
    static constexpr int kMaxAlternatives = 32;
    Best second(std::uint64_t context) const;

    // Writes the relative frequencies of all continuations of a context, sorted by token; none if
    // the context is unknown.
    void frequencies(std::uint64_t context, Distribution& out) const;

    std::size_t size_bytes() const;

 private:
    using Index = std::uint32_t;
    static constexpr Index kNone = IndexMap::kNone;

    struct Context {
        std::uint64_t hash;
        std::uint32_t total;
        std::uint32_t born;  // position of its first count since it was last evicted
        Index best;
        Index first;         // head of the list of its continuations
        Index newer, older;  // neighbours in order of last update
    };
    struct Continuation {
        Index context;
        Token token;
        std::uint32_t count;
        std::uint32_t position;  // of the last count
        Index next, previous;    // neighbours among those of its context
    };

    Index find_context(std::uint64_t hash) const;
    Index find_continuation(Index context, Token token) const;
    Index add_context(std::uint64_t hash, std::uint32_t position);
    Index add_continuation(Index context, Token token);
    void remove_context(Index context);
    void remove_continuation(Index continuation);
    void link_newest(Index context);
    void unlink(Index context);
    void find_best(Context& context) const;

    Pool<Context, &Context::first> contexts_;
    Pool<Continuation, &Continuation::next> continuations_;
    IndexMap by_hash_;
    IndexMap by_token_;
    Index newest_ = kNone;
    Index oldest_ = kNone;
};

}  // namespace specllama
