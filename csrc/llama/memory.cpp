#include "llama/memory.h"

#include <algorithm>

#include "llama.h"

namespace specllama {

Memory::Memory(llama_context* context)
    : memory_(llama_get_memory(context)),
      can_cut_(!llama_model_is_recurrent(llama_get_model(context)) &&
               !llama_model_is_hybrid(llama_get_model(context))),
      n_swa_(llama_model_n_swa(llama_get_model(context))) {}

int Memory::rewind(SequenceId sequence, int keep) {
    const int n_now = llama_memory_seq_pos_max(memory_, sequence) + 1;
    if (n_now <= keep) return n_now;
    // A sliding window lets older cells go. Cutting would succeed all the same, and the next
    // decode would attend to cells that are not there.
    const bool in_window =
        n_swa_ == 0 || llama_memory_seq_pos_min(memory_, sequence) <= std::max(0, keep - n_swa_);
    if (can_cut_ && keep > 0 && in_window && llama_memory_seq_rm(memory_, sequence, keep, -1))
        return keep;
    llama_memory_seq_rm(memory_, sequence, -1, -1);
    return 0;
}

}  // namespace specllama
