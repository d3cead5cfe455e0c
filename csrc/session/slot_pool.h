#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "runtime/memory.h"
#include "session/prompt_cache.h"
#include "specllama/types.h"

namespace specllama {

// The slots of a context's memory, one per sequence, and what they hold.
//
// A free slot keeps what its last request left there, until the slot is needed; then a copy is kept
// elsewhere. If a prompt begins like what any slot, free or taken, or a copy holds, only the rest
// of it is decoded. A prompt that begins like none gets the slot that has been free the longest.
class SlotPool {
 public:
    // The memory must outlive this, and have room for n_slots sequences; null: the target's memory
    // is elsewhere, so slots hold nothing. cache_bytes: most bytes of the copies; see PromptCache.
    SlotPool(Memory* memory, int n_slots, std::size_t cache_bytes);

    int n_free() const { return n_free_; }
    bool taken(int slot) const { return slots_[slot].sequence != nullptr; }

    // Puts a new sequence into a free slot, with as many of its leading tokens as slots or copies
    // can give, if it wants any; into the slot that it asks for, with what that slot or a copy can
    // give. Its last token is not among them, since its logits are wanted. The pool refers to the
    // sequence until it is taken out. There must be a free slot. What a spoiled sequence leaves is
    // not used again, nor is what it may have come from.
    void put(Sequence& sequence);
    void take_out(const Sequence& sequence);

    // What the sequence taken out last, or the state loaded last, has left; empty if its slot is in
    // use. left(slot): what a free slot holds.
    struct Left {
        std::vector<Token> tokens;
        std::vector<std::uint8_t> state;  // see Memory::state
    };
    Left left() const;
    Left left(int slot) const;
    // Puts such tokens and their state into a free slot (-1: the one that has been free the
    // longest); false if the memory does not take them, in which case the slot holds what it held
    // before. There must be a free slot.
    bool load(TokenSpan tokens, std::span<const std::uint8_t> state, int slot = -1);
    // Empties a free slot; returns how many tokens it held.
    int erase(int slot);

 private:
    struct Slot {
        const Sequence* sequence = nullptr;  // whose it is; null: free
        std::vector<Token> left;             // tokens in the memory, if free
        std::uint64_t freed = 0;             // n_freed_ when it became free

        TokenSpan tokens() const;
    };
    // The leading tokens of a prompt that a slot can give.
    struct Prefix {
        int slot = 0;
        int n_tokens = 0;
    };

    int fill(const Sequence& sequence, int& id);
    Prefix longest(TokenSpan prompt) const;
    Prefix longest(TokenSpan prompt, int slot) const;
    int oldest_free() const;
    int fill(int id, const Prefix& prefix, TokenSpan prompt);
    int fill(int id, PromptCache::Entry entry, int n_tokens);
    void keep_copy(int id);
    void forget();

    Memory* memory_;
    PromptCache cache_;
    std::vector<Slot> slots_;  // [sequence id]
    int n_free_;
    std::uint64_t n_freed_ = 0;
    bool spoiled_ = false;  // whether the memory may hold values that are not numbers
};

}  // namespace specllama
