#include "llama/memory.h"

#include <algorithm>

#include "llama.h"

namespace specllama {

namespace {

// Only what cannot be cut: of a hybrid model's memory the recurrent part.
constexpr llama_state_seq_flags kRecurrentPart = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;

int count_cuttable(const llama_context* context) {
    const llama_model* model = llama_get_model(context);
    const bool has_states = llama_model_is_recurrent(model) || llama_model_is_hybrid(model);
    return has_states ? static_cast<int>(llama_n_rs_seq(context)) : Memory::kAnyNumber;
}

}  // namespace

Memory::Memory(llama_context* context)
    : context_(context),
      memory_(llama_get_memory(context)),
      n_swa_(llama_model_n_swa(llama_get_model(context))),
      n_cuttable_(count_cuttable(context)),
      decoded_from_(llama_n_seq_max(context)) {}

int Memory::size(SequenceId sequence) const {
    return llama_memory_seq_pos_max(memory_, sequence) + 1;
}

void Memory::checkpoint(SequenceId sequence) {
    if (n_cuttable_ == kAnyNumber) return;
    const int now = size(sequence);
    if (saved_sequence_ == sequence && saved_size_ == now) return;
    saved_sequence_ = -1;
    if (now == 0) return;
    saved_.resize(llama_state_seq_get_size_ext(context_, sequence, kRecurrentPart));
    if (llama_state_seq_get_data_ext(context_, saved_.data(), saved_.size(), sequence,
                                     kRecurrentPart) == 0)
        return;
    saved_sequence_ = sequence;
    saved_size_ = now;
}

bool Memory::in_reach(SequenceId sequence, int keep) const {
    // A sliding window lets older cells go. Cutting would succeed all the same, and the next
    // decode would attend to cells that are not there.
    if (n_cuttable_ == kAnyNumber)
        return n_swa_ == 0 ||
               llama_memory_seq_pos_min(memory_, sequence) <= std::max(0, keep - n_swa_);
    // The snapshots are those after the last tokens of the last decode; there is none before its
    // first token, and llama.cpp would take up what an earlier decode has left there. More tokens
    // than there are snapshots, and a second cut, it refuses itself.
    return keep > decoded_from_[sequence];
}

bool Memory::restore() {
    // The state first: only then does nothing of the recurrent part lie behind the cut.
    return llama_state_seq_set_data_ext(context_, saved_.data(), saved_.size(), saved_sequence_,
                                        kRecurrentPart) != 0 &&
           llama_memory_seq_rm(memory_, saved_sequence_, saved_size_, -1);
}

int Memory::rewind(SequenceId sequence, int keep) {
    const int now = size(sequence);
    if (now <= keep) return now;
    if (keep > 0 && in_reach(sequence, keep) && llama_memory_seq_rm(memory_, sequence, keep, -1))
        return keep;
    if (saved_sequence_ == sequence && saved_size_ <= keep && restore()) return saved_size_;
    llama_memory_seq_rm(memory_, sequence, -1, -1);
    saved_sequence_ = -1;
    return 0;
}

}  // namespace specllama
