#include "session/prompt_cache.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "system/host.h"

namespace specllama {

namespace {

// Whether an entry covers all of a text.
bool gives(const PromptCache::Entry& entry, TokenSpan tokens) {
    const int n = static_cast<int>(tokens.size());
    return common_prefix(entry.tokens, tokens) == n && entry.backup.rewindable(n) == n;
}

// Bytes of main memory that would be free if n_bytes were not in use.
std::size_t free_beside(std::size_t n_bytes) {
    return static_cast<std::size_t>(memory_available()) + n_bytes;
}

}  // namespace

PromptCache::Prefix PromptCache::longest(TokenSpan prompt) {
    Prefix best{entries_.end(), 0};
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        const int n = entry->backup.rewindable(common_prefix(entry->tokens, prompt));
        if (n > best.n_tokens) best = {entry, n};
    }
    return best;
}

// Copies are optional: without memory for one, the request continues without it.
void PromptCache::keep(Memory& memory, SequenceId sequence, TokenSpan tokens) {
    if (most_bytes_ == 0) return;
    const auto other =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return gives(entry, tokens); });
    if (other != entries_.end()) {
        entries_.splice(entries_.end(), entries_, other);
        return;
    }
    try {
        if (!make_room(memory.n_bytes(sequence), free_beside(n_bytes_))) return;
        Entry entry{{tokens.begin(), tokens.end()}, memory.back_up(sequence)};
        if (!entry.backup.state.empty()) put(std::move(entry));
    } catch (const std::bad_alloc&) {
        clear();
    }
}

void PromptCache::clear() {
    entries_.clear();
    n_bytes_ = 0;
}

PromptCache::Entry PromptCache::take(Iterator entry) {
    Entry taken = std::move(*entry);
    n_bytes_ -= taken.backup.n_bytes();
    entries_.erase(entry);
    return taken;
}

void PromptCache::put(Entry entry) {
    for (auto other = entries_.begin(); other != entries_.end();) {
        const auto next = std::next(other);
        if (gives(entry, other->tokens)) take(other);
        other = next;
    }
    const std::size_t n_bytes = entry.backup.n_bytes();
    if (!make_room(n_bytes, free_beside(n_bytes_ + n_bytes))) return;
    entries_.push_back(std::move(entry));
    n_bytes_ += n_bytes;
}

bool PromptCache::make_room(std::size_t n_bytes, std::size_t n_free) {
    const std::size_t most = std::min(most_bytes_, n_free / 2);
    if (n_bytes > most) return false;
    while (n_bytes_ + n_bytes > most) take(entries_.begin());
    return true;
}

}  // namespace specllama
