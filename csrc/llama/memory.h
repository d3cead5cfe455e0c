#pragma once

#include <cstdint>
#include <vector>

#include "specllama/types.h"

struct llama_context;
struct llama_memory_i;

namespace specllama {

// The KV memory of a context. What it can do is known from the model: attention memory can be cut
// anywhere (a sliding window only as far back as it still reaches); recurrent and hybrid memory
// keeps no past states, and can only go back to one that was saved.
class Memory {
 public:
    // Must outlive this.
    explicit Memory(llama_context* context);

    // Whether a sequence can be cut right after a decode, to any length it had before it.
    bool can_cut() const { return can_cut_; }

    // Where the memory cannot be cut, saves the state of a sequence, for `rewind` to go back to;
    // one state, of one sequence, is held. Does nothing where it can be cut, or when this very
    // state is held already.
    void checkpoint(SequenceId sequence);

    // Cuts a sequence to its first `keep` positions, or to as many of them as it can go back to.
    // Returns how many remain: `keep`; the position of the last checkpoint; or 0, the sequence
    // having been emptied.
    int rewind(SequenceId sequence, int keep);

 private:
    int size(SequenceId sequence) const;
    bool restore();

    llama_context* context_;
    llama_memory_i* memory_;
    bool can_cut_;
    int n_swa_;
    // The checkpoint.
    SequenceId saved_sequence_ = -1;
    int saved_size_ = 0;
    std::vector<std::uint8_t> saved_;
};

}  // namespace specllama
