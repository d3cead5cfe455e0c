#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

#include "runtime/memory.h"
#include "specllama/types.h"

namespace specllama {

// Length of the common prefix of two texts, in tokens. An image or a sound counts only as a whole.
inline int common_prefix(TokenSpan a, TokenSpan b) {
    auto n = static_cast<int>(std::ranges::mismatch(a, b).in1 - a.begin());
    const auto inside = [n](TokenSpan text) {
        return n < std::ssize(text) && is_media(text[n]) && !begins_media(text[n]);
    };
    if (inside(a) || inside(b))
        while (!begins_media(a[--n])) {
        }
    return n;
}

// Copies in main memory of the KV memory of earlier requests, made when others take their slots. A
// prompt that begins like one of these texts is decoded only from the first difference. The least
// recently used copy is dropped first.
class PromptCache {
 public:
    // most_bytes: of all copies; 0: none are made. In any case they take at most half of the
    // memory_available() without them.
    explicit PromptCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    struct Entry {
        std::vector<Token> tokens;
        Memory::Backup backup;
    };
    using Iterator = std::list<Entry>::iterator;

    // The entry that covers the most leading tokens of a prompt.
    struct Prefix {
        Iterator entry;
        int n_tokens = 0;  // 0: no entry covers any
    };
    Prefix longest(TokenSpan prompt);

    // Makes an entry of a sequence's memory, which holds `tokens`, unless it does not fit or
    // another entry covers them.
    void keep(Memory& memory, SequenceId sequence, TokenSpan tokens);

    // take() removes an entry. put() adds one, as the most recently used.
    Entry take(Iterator entry);
    void put(Entry entry);
    void clear();

 private:
    // Drops entries until another one of n_bytes fits; returns false if it cannot fit. n_free:
    // bytes that would be free without entries.
    bool make_room(std::size_t n_bytes, std::size_t n_free);

    std::size_t most_bytes_;
    std::size_t n_bytes_ = 0;   // of all entries
    std::list<Entry> entries_;  // the last one is the most recently used
};

}  // namespace specllama
