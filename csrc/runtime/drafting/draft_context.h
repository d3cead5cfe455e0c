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

// The base class of contexts of drafters that read a target's hidden states. It has a separate KV
// memory, whose positions count what the drafter has processed. Only one thread at a time may use
// it.
class DraftContext {
 public:
    const Model& model() const { return *model_; }
    // Length of a hidden state.
    int n_state() const { return n_state_; }
    // Maximum number of rows of a batch.
    int n_batch() const { return n_batch_; }

    // See Context::adapt_threads.
    void adapt_threads();

    // Drops the rows added for the next decode.
    void clear() { batch_.clear(); }

    // The logits [n_vocab] and the hidden state [n_state] of a row that requested logits; the
    // caller may change the logits. Valid until the next decode.
    std::span<float> logits(int row);
    const float* state(int row) const;

    // Positions that the memory holds of a sequence.
    int size(SequenceId sequence) const;
    // Cuts a sequence to its first n positions.
    void cut(SequenceId sequence, int n);
    // Replaces the content of `to` by the first n positions of `from`.
    void copy(SequenceId from, SequenceId to, int n);

 protected:
    // Parameters with a unified memory of n_cells tokens plus one batch, and batches of n_batch
    // rows, which may all request logits. The target supplies what the model lacks.
    static llama_context_params params_for(const ContextOptions& options, const Context& target,
                                           int n_cells, int n_batch);

    // options: those of the parameters, for errors. wanted_only: whether only the states of rows
    // that request logits are kept. Throws InvalidArgument, ModelError and OutOfMemory.
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
    int most_threads_;  // 0: set by the options
    llama_context_ptr context_;
    int n_state_;
    int n_batch_;
    Batch batch_;
};

}  // namespace specllama
