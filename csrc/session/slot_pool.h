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

// The slots of a context's memory, one per sequence, and their contents.
//
// A free slot keeps the content of its last request until the slot is needed; then a copy is kept
// in main memory. If a prompt begins like the content of a slot (free or taken) or of a copy, only
// the rest of it is decoded. Other prompts get the slot that has been free the longest. If the
// memory has per-sequence streams, only requests in neighbouring slots are decoded together, so
// they get a slot next to taken ones.
class SlotPool {
 public:
    // The memory must outlive this, and have room for n_slots sequences; null: the target is
    // remote, so slots hold nothing. cache_bytes: most bytes of the copies; see PromptCache.
    SlotPool(Memory* memory, int n_slots, std::size_t cache_bytes);

    int n_free() const { return n_free_; }
    bool taken(int slot) const { return slots_[slot].sequence != nullptr; }

    // Puts a new sequence into a free slot, with as many of its leading tokens as slots or copies
    // hold (none if it does not reuse any). If it needs a particular slot, it gets that one, with
    // the tokens that this slot or a copy holds. Its last token is never reused, because its logits
    // are needed. The pool refers to the sequence until it is taken out. There must be a free slot.
    // The memory of a spoiled sequence is not used again, nor is the memory that may have spoiled
    // it.
    void put(Sequence& sequence);
    void take_out(const Sequence& sequence);

    // left(): the content of the slot of the sequence taken out last or the state loaded last;
    // empty if that slot is in use. left(slot): the content of a free slot.
    struct Left {
        std::vector<Token> tokens;
        std::vector<std::uint8_t> state;  // see Memory::state
    };
    Left left() const;
    Left left(int slot) const;
    // Loads such tokens and their state into a free slot (-1: the one that a prompt would get).
    // Returns false if the memory refuses them; the slot then keeps its content. There must be a
    // free slot.
    bool load(TokenSpan tokens, std::span<const std::uint8_t> state, int slot = -1);
    // Empties a free slot; returns the number of tokens it held.
    int erase(int slot);

 private:
    struct Slot {
        const Sequence* sequence = nullptr;  // its owner; null: free
        std::vector<Token> left;             // tokens in the memory, if free
        std::uint64_t freed = 0;             // n_freed_ when it became free

        TokenSpan tokens() const;
    };
    // The leading tokens of a prompt that a slot covers.
    struct Prefix {
        int slot = 0;
        int n_tokens = 0;
    };

    int fill(const Sequence& sequence, int& id);
    Prefix longest(TokenSpan prompt) const;
    Prefix longest(TokenSpan prompt, int slot) const;
    int n_joined(int slot) const;
    int best_free() const;
    int fill(int id, const Prefix& prefix, TokenSpan prompt);
    int fill(int id, PromptCache::Entry entry, int n_tokens);
    void keep_copy(int id);
    void forget();

    Memory* memory_;
    PromptCache cache_;
    std::vector<Slot> slots_;  // [sequence id]
    int n_free_;
    std::uint64_t n_freed_ = 0;
    bool spoiled_ = false;  // whether the memory may hold values that are not finite
};

}  // namespace specllama
