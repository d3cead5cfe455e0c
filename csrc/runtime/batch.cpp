#include "runtime/batch.h"

#include <algorithm>

namespace specllama {

Batch::Batch(int capacity)
    : tokens_(capacity),
      positions_(capacity),
      sequences_(capacity),
      ids_(capacity),
      n_ids_(capacity),
      logits_(capacity) {}

int Batch::add(Token token, Position position, SequenceId sequence, bool logits) {
    sequences_[n_] = sequence;
    return add(token, position, std::span(sequences_).subspan(n_, 1), logits);
}

int Batch::add(Token token, Position position, std::span<SequenceId> ids, bool logits) {
    tokens_[n_] = token;
    positions_[n_] = position;
    ids_[n_] = ids.data();
    n_ids_[n_] = static_cast<std::int32_t>(ids.size());
    ask(n_, logits);
    return n_++;
}

int Batch::n_asking() const {
    return static_cast<int>(std::ranges::count(std::span(logits_).first(n_), 1));
}

llama_batch Batch::view(float* vectors) {
    return {.n_tokens = n_,
            .token = tokens_.data(),
            .embd = vectors,
            .pos = positions_.data(),
            .n_seq_id = n_ids_.data(),
            .seq_id = ids_.data(),
            .logits = logits_.data()};
}

llama_batch Batch::view_without_tokens(float* vectors) {
    llama_batch batch = view(vectors);
    batch.token = nullptr;
    return batch;
}

}  // namespace specllama
