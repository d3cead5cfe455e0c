#pragma once

#include <memory>
#include <span>
#include <string>

#include "llama-cpp.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "runtime/model.h"
#include "specllama/session_options.h"
#include "specllama/types.h"

namespace specllama {

// What the contexts of all drafters have in common that read a target's hidden states. It has a KV
// memory of its own, in which positions count what the drafter has taken in. Only one thread at a
// time may use it.
class DraftContext {
 public:
    const Model& model() const { return *model_; }
    // Length of a hidden state.
    int n_state() const { return n_state_; }
    // Most rows of a batch.
    int n_batch() const { return n_batch_; }

    // See Context::adapt_threads.
    void adapt_threads();

    // Drops the rows to decode next.
    void clear() { batch_.clear(); }

    // The logits [n_vocab] and the hidden state [n_state] of a row that asked for logits; the
    // caller may change the logits. Valid until the next decode.
    std::span<float> logits(int row);
    const float* state(int row) const;

    // Positions that the memory holds of a sequence.
    int size(SequenceId sequence) const;
    // Cuts a sequence to its first n positions.
    void cut(SequenceId sequence, int n);
    // Replaces what the memory holds of `to` by the first n positions of `from`.
    void copy(SequenceId from, SequenceId to, int n);

 protected:
    // Parameters with a unified memory of n_cells tokens and one batch more, and batches of n_batch
    // rows, which may all ask for logits. What the model lacks is the target's.
    static llama_context_params params_for(const ContextOptions& options, const Context& target,
                                           int n_cells, int n_batch);

    // options: those that the parameters came from, for errors. wanted_only: whether only the
    // states of rows that ask for logits are kept. Throws InvalidArgument, ModelError and
    // OutOfMemory.
    DraftContext(std::shared_ptr<const Model> model, const llama_context_params& params,
                 const ContextOptions& options, bool wanted_only = false);
    ~DraftContext() = default;

    llama_context* get() const { return context_.get(); }
    // Decodes a batch, or encodes it, and waits for the result. Throws DecodeError.
    void decode(const llama_batch& batch);
    void encode(const llama_batch& batch);

    Batch& batch() { return batch_; }

 private:
    std::shared_ptr<const Model> model_;
    int most_threads_;  // 0: the options say how many
    llama_context_ptr context_;
    int n_state_;
    int n_batch_;
    Batch batch_;
};

}  // namespace specllama
