#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "specllama/types.h"

struct llama_context;
struct llama_memory_i;

namespace specllama {

// The KV memory of a context. What it can do is known from the model: attention memory can be cut
// anywhere (a sliding window only as far back as it still reaches). Recurrent and hybrid memory
// keeps the states after the last few tokens of a decode, its snapshots, where llama.cpp has them
// for the architecture; else it can only go back to a state that was saved.
class Memory {
 public:
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();

    // Must outlive this.
    explicit Memory(llama_context* context);

    // Most tokens that can be cut off a sequence, once, right after the decode that added them and
    // at least one before them: any number, as many as there are snapshots, or 0.
    int n_cuttable() const { return n_cuttable_; }

    // Must be told before each decode, for each sequence in it: its first position there.
    void expect(SequenceId sequence, Position first) { decoded_from_[sequence] = first; }

    // Saves the state of a sequence, for `rewind` to go back to; one state, of one sequence, is
    // held. Does nothing where any number of tokens can be cut, or when this very state is held
    // already.
    void checkpoint(SequenceId sequence);

    // Cuts a sequence to its first `keep` positions, or to as many of them as it can go back to.
    // Returns how many remain: `keep`; the position of the last checkpoint; or 0, the sequence
    // having been emptied.
    int rewind(SequenceId sequence, int keep);

 private:
    int size(SequenceId sequence) const;
    bool in_reach(SequenceId sequence, int keep) const;
    bool restore();

    llama_context* context_;
    llama_memory_i* memory_;
    int n_swa_;
    int n_cuttable_;
    std::vector<Position> decoded_from_;  // [sequence]: first position of the last decode
    // The checkpoint.
    SequenceId saved_sequence_ = -1;
    int saved_size_ = 0;
    std::vector<std::uint8_t> saved_;
};

}  // namespace specllama
