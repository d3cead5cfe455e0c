#pragma once

#include "specllama/types.h"

struct llama_context;
struct llama_memory_i;

namespace specllama {

// The KV memory of a context. What it can do is known from the model: attention memory can be cut
// anywhere (a sliding window only as far back as it still reaches), recurrent and hybrid memory
// only be emptied.
class Memory {
 public:
    // Both must outlive this.
    explicit Memory(llama_context* context);

    // Whether a sequence can be cut right after a decode, to any length it had before it.
    bool can_cut() const { return can_cut_; }

    // Cuts a sequence to its first `keep` positions. Returns how many remain: `keep`, or 0 when
    // the memory cannot be cut there, and then the sequence has been emptied.
    int rewind(SequenceId sequence, int keep);

 private:
    llama_memory_i* memory_;
    bool can_cut_;
    int n_swa_;
};

}  // namespace specllama
