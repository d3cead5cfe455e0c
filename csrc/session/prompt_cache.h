#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <vector>

#include "runtime/memory.h"
#include "specllama/types.h"

namespace specllama {

// How many tokens two texts begin with in common. Of an image or a sound it is all or nothing.
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

// Copies, in main memory, of what requests left in the KV memory, made when others take their
// slots there. A prompt that begins like one of these texts is not decoded again as far as that
// goes. What was not needed for the longest goes first.
class PromptCache {
 public:
    // most_bytes: of all copies; 0: none are made. Whatever it is, they take at most half of the
    // memory_available() that there would be without them.
    explicit PromptCache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

    struct Entry {
        std::vector<Token> tokens;
        Memory::Backup backup;
    };
    using Iterator = std::list<Entry>::iterator;

    // The entry that can give the most leading tokens of a prompt.
    struct Prefix {
        Iterator entry;
        int n_tokens = 0;  // 0: no entry can give any
    };
    Prefix longest(TokenSpan prompt);

    // Makes an entry of what a sequence holds, whose tokens these are, unless it does not fit or
    // another entry can give as much.
    void keep(Memory& memory, SequenceId sequence, TokenSpan tokens);

    // Takes an entry out. put(): puts it in again, as the one that was needed last.
    Entry take(Iterator entry);
    void put(Entry entry);
    void clear();

 private:
    // Drops entries until another of so many bytes may stay; returns false if none may. n_free:
    // bytes that would be free if nothing were kept.
    bool make_room(std::size_t n_bytes, std::size_t n_free);

    std::size_t most_bytes_;
    std::size_t n_bytes_ = 0;   // of all entries
    std::list<Entry> entries_;  // the last is the one needed last
};

}  // namespace specllama
