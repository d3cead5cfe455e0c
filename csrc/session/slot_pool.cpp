#include "session/slot_pool.h"

#include <algorithm>
#include <utility>

namespace specllama {

namespace {

// Whether most of a text remains if it is cut to its first n tokens.
bool keeps_most(TokenSpan tokens, int n) { return 2 * n >= static_cast<int>(tokens.size()); }

}  // namespace

TokenSpan SlotPool::Slot::tokens() const {
    return sequence == nullptr ? TokenSpan(left) : sequence->tokens().first(sequence->n_cached());
}

SlotPool::SlotPool(Memory* memory, int n_slots, std::size_t cache_bytes)
    : memory_(memory), cache_(cache_bytes), slots_(n_slots), n_free_(n_slots) {}

// The slot that covers the most leading tokens. A free slot can be cut back to them, a taken one
// can only be copied from; among equals, a free one wins.
SlotPool::Prefix SlotPool::longest(TokenSpan prompt) const {
    Prefix best;
    bool best_is_free = false;
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
        const bool is_free = slots_[i].sequence == nullptr;
        const int n_common = common_prefix(slots_[i].tokens(), prompt);
        const int n =
            is_free ? memory_->rewindable(i, n_common) : memory_->copyable_prefix(i, n_common);
        if (n < best.n_tokens || (n == best.n_tokens && best_is_free)) continue;
        best = {i, n};
        best_is_free = is_free;
    }
    return best;
}

// The leading tokens that a free slot covers.
SlotPool::Prefix SlotPool::longest(TokenSpan prompt, int slot) const {
    return {slot, memory_->rewindable(slot, common_prefix(slots_[slot].left, prompt))};
}

// The neighbours of a slot whose requests can be decoded together with one in this slot.
int SlotPool::n_joined(int slot) const {
    if (memory_ == nullptr || !memory_->per_sequence_streams()) return 0;
    const auto is_taken = [&](int i) {
        return i >= 0 && i < static_cast<int>(slots_.size()) && slots_[i].sequence != nullptr;
    };
    return is_taken(slot - 1) + is_taken(slot + 1);
}

int SlotPool::best_free() const {
    const auto rank = [&](int slot) { return std::pair(-n_joined(slot), slots_[slot].freed); };
    int best = -1;
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i)
        if (slots_[i].sequence == nullptr && (best < 0 || rank(i) < rank(best))) best = i;
    return best;
}

void SlotPool::put(Sequence& sequence) {
    int id = sequence.wanted_slot() < 0 ? best_free() : sequence.wanted_slot();
    const int n_cached = memory_ != nullptr ? fill(sequence, id) : 0;
    slots_[id].sequence = &sequence;
    --n_free_;
    sequence.enter(id, n_cached);
}

// Chooses the free slot for a sequence (`id` unless another one is better), and fills it with the
// sequence's leading tokens as far as possible; returns their number. If a slot would lose most of
// its content, it is copied instead, if possible. A copy in main memory is loaded only if that
// saves time.
int SlotPool::fill(const Sequence& sequence, int& id) {
    const TokenSpan prompt = sequence.tokens().first(sequence.tokens().size() - 1);
    const Prefix prefix = sequence.wanted_slot() < 0 ? longest(prompt) : longest(prompt, id);
    const PromptCache::Prefix copy = cache_.longest(prompt);
    const bool from_copy =
        !memory_->copying() && copy.n_tokens >= prefix.n_tokens + Memory::kShortestCopy;
    const Slot& source = slots_[prefix.slot];
    if (!from_copy && source.sequence == nullptr && prefix.n_tokens > 0 &&
        (keeps_most(source.tokens(), prefix.n_tokens) ||
         memory_->copyable_prefix(prefix.slot, prefix.n_tokens) < prefix.n_tokens))
        id = prefix.slot;
    // Reserved here so that take_out cannot fail.
    slots_[id].left.reserve(sequence.n_tokens() + sequence.n_tokens_left());
    const int n_cached =
        from_copy ? fill(id, cache_.take(copy.entry), copy.n_tokens) : fill(id, prefix, prompt);
    return sequence.caches_prompt() ? n_cached : memory_->rewind(id, 0);
}

// Fills a free slot with the leading tokens of a prompt from another slot or itself; returns their
// number.
int SlotPool::fill(int id, const Prefix& prefix, TokenSpan prompt) {
    const bool by_copy = id != prefix.slot && prefix.n_tokens >= Memory::kShortestCopy;
    const int n_common = common_prefix(slots_[id].left, prompt);
    if (by_copy || !keeps_most(slots_[id].left, memory_->rewindable(id, n_common))) keep_copy(id);
    slots_[id].left.clear();  // its content is unknown after an error
    return by_copy ? memory_->copy_prefix(prefix.slot, id, prefix.n_tokens)
                   : memory_->rewind(id, n_common);
}

// Fills a free slot with the first tokens of a copy; returns their number. If these are most of the
// copy, the copy is dropped: the slot's content is copied again when the slot is needed.
int SlotPool::fill(int id, PromptCache::Entry entry, int n_tokens) {
    keep_copy(id);
    slots_[id].left.clear();
    if (!memory_->restore(id, entry.backup)) return 0;
    const int n_cached = memory_->rewind(id, n_tokens);
    if (!keeps_most(entry.tokens, n_cached)) cache_.put(std::move(entry));
    return n_cached;
}

// Keeps a copy of a free slot's content, unless it is short, cannot be copied now, or another slot
// holds it, too.
void SlotPool::keep_copy(int id) {
    const TokenSpan tokens = slots_[id].left;
    const auto n = static_cast<int>(tokens.size());
    if (n < Memory::kShortestCopy || memory_->copying() || memory_->rewindable(id, n) != n) return;
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i)
        if (i != id && common_prefix(slots_[i].tokens(), tokens) == n &&
            memory_->copyable_prefix(i, n) == n)
            return;
    cache_.keep(*memory_, id, tokens);
}

void SlotPool::take_out(const Sequence& sequence) {
    Slot& slot = slots_[sequence.id()];
    if (memory_ != nullptr) {
        const TokenSpan held = slot.tokens();
        slot.left.assign(held.begin(), held.end());
    }
    slot.freed = ++n_freed_;
    slot.sequence = nullptr;
    ++n_free_;
    spoiled_ = spoiled_ || sequence.spoiled;
    if (spoiled_) forget();
}

// Empties the free slots, and the whole memory once it holds no request.
void SlotPool::forget() {
    cache_.clear();
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
        if (slots_[i].sequence != nullptr) continue;
        slots_[i].left.clear();
        memory_->rewind(i, 0);
    }
    if (n_free_ < static_cast<int>(slots_.size())) return;
    memory_->clear();
    spoiled_ = false;
}

// The memory may hold less than the slot's tokens: a failed decode of others can lose states.
SlotPool::Left SlotPool::left() const {
    for (int i = 0; i < static_cast<int>(slots_.size()); ++i) {
        const Slot& slot = slots_[i];
        if (slot.sequence == nullptr && n_freed_ > 0 && slot.freed == n_freed_) return left(i);
    }
    return {};
}

SlotPool::Left SlotPool::left(int slot) const {
    const std::vector<Token>& tokens = slots_[slot].left;
    const int n = memory_->rewindable(slot, static_cast<int>(tokens.size()));
    return {{tokens.begin(), tokens.begin() + n}, memory_->state(slot)};
}

int SlotPool::erase(int slot) {
    const auto n = static_cast<int>(std::exchange(slots_[slot].left, {}).size());
    memory_->rewind(slot, 0);
    return n;
}

bool SlotPool::load(TokenSpan tokens, std::span<const std::uint8_t> state, int slot_id) {
    const int id = slot_id < 0 ? best_free() : slot_id;
    Slot& slot = slots_[id];
    const int n_held = memory_->rewindable(id, static_cast<int>(slot.left.size()));
    if (!memory_->fits(id, TokenSpan(slot.left).first(n_held), state, tokens)) return false;
    keep_copy(id);
    const std::vector<std::uint8_t> before = memory_->state(id);
    std::vector<Token> loaded(tokens.begin(), tokens.end());
    // If an allocation fails meanwhile, the slot counts as empty, because its content is then
    // unknown.
    std::vector<Token> left = std::exchange(slot.left, {});
    if (memory_->load(id, state, static_cast<int>(loaded.size()))) {
        slot.left.swap(loaded);
        slot.freed = ++n_freed_;
        return true;
    }
    if (memory_->load(id, before, static_cast<int>(left.size()))) slot.left.swap(left);
    return false;
}

}  // namespace specllama
