#include "session/slot_pool.h"

#include <algorithm>
#include <utility>

namespace specllama {

namespace {

int common_prefix(TokenSpan a, TokenSpan b) {
    const auto [end, _] = std::ranges::mismatch(a, b);
    return static_cast<int>(end - a.begin());
}

}  // namespace

TokenSpan SlotPool::Slot::tokens() const {
    return sequence == nullptr ? TokenSpan(left) : sequence->tokens().first(sequence->n_cached());
}

SlotPool::SlotPool(Memory& memory, int n_slots)
    : memory_(memory), slots_(n_slots), n_free_(n_slots) {}

// The slot that can give the most leading tokens. A free slot can be cut back to them, another only
// be copied from; among equals, a free one is taken.
SlotPool::Prefix SlotPool::longest(TokenSpan prompt) const {
    Prefix best;
    bool best_is_free = false;
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
        const bool is_free = slots_[i].sequence == nullptr;
        const int n_common = common_prefix(slots_[i].tokens(), prompt);
        const int n = is_free ? memory_.rewindable(i, n_common) : memory_.copyable(i, n_common);
        if (n < best.n_tokens || (n == best.n_tokens && best_is_free)) continue;
        best = {i, n};
        best_is_free = is_free;
    }
    return best;
}

int SlotPool::oldest_free() const {
    int oldest = -1;
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i)
        if (slots_[i].sequence == nullptr && (oldest < 0 || slots_[i].freed < slots_[oldest].freed))
            oldest = i;
    return oldest;
}

void SlotPool::put(Sequence& sequence) {
    const TokenSpan prompt = sequence.tokens().first(sequence.tokens().size() - 1);
    const Prefix prefix = longest(prompt);
    const Slot& source = slots_[prefix.slot];
    int id = oldest_free();
    int n_cached = 0;
    // A slot that would lose most of what it holds is copied from instead.
    const bool keeps_most = 2 * prefix.n_tokens >= static_cast<int>(source.tokens().size());
    if (source.sequence == nullptr && keeps_most && prefix.n_tokens > 0) id = prefix.slot;
    // Reserved here so that take_out cannot fail.
    slots_[id].left.reserve(sequence.n_tokens() + sequence.n_tokens_left());
    if (id != prefix.slot && prefix.n_tokens >= Memory::kShortestCopy)
        n_cached = memory_.copy(prefix.slot, id, prefix.n_tokens);
    else
        n_cached = memory_.rewind(id, common_prefix(slots_[id].tokens(), prompt));
    slots_[id].sequence = &sequence;
    slots_[id].left.clear();
    --n_free_;
    sequence.enter(id, n_cached);
}

void SlotPool::take_out(const Sequence& sequence) {
    Slot& slot = slots_[sequence.id()];
    const TokenSpan held = slot.tokens();
    slot.left.assign(held.begin(), held.end());
    slot.freed = ++n_freed_;
    slot.sequence = nullptr;
    ++n_free_;
}

// The memory may hold less than was left in the slot: a failed decode of others can cost it states.
SlotPool::Left SlotPool::left() const {
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
        const auto& [sequence, tokens, freed] = slots_[i];
        if (sequence != nullptr || n_freed_ == 0 || freed != n_freed_) continue;
        const int n = memory_.rewindable(i, static_cast<int>(tokens.size()));
        return {{tokens.begin(), tokens.begin() + n}, memory_.state(i)};
    }
    return {};
}

bool SlotPool::load(TokenSpan tokens, std::span<const std::uint8_t> state) {
    const int id = oldest_free();
    Slot& slot = slots_[id];
    const std::vector<std::uint8_t> before = memory_.state(id);
    std::vector<Token> loaded(tokens.begin(), tokens.end());
    // If an allocation fails on the way, the slot counts as empty: what it holds is not known then.
    std::vector<Token> left = std::exchange(slot.left, {});
    if (memory_.load(id, state, static_cast<int>(loaded.size()))) {
        slot.left.swap(loaded);
        slot.freed = ++n_freed_;
        return true;
    }
    if (memory_.load(id, before, static_cast<int>(left.size()))) slot.left.swap(left);
    return false;
}

}  // namespace specllama
