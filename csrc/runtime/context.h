#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/context_plan.h"
#include "llama-cpp.h"
#include "runtime/batch.h"
#include "runtime/memory.h"
#include "runtime/model.h"
#include "specllama/session_options.h"
#include "specllama/types.h"

namespace specllama {

// A model's KV memory and compute buffers. Only one thread at a time may use it.
class Context {
 public:
    // n_logits: most rows per sequence in a batch that may request logits. n_branches: branches
    // that each sequence should have; Memory::n_branches() says how many it gets. plan.n_ctx must
    // be resolved. Throws InvalidArgument and OutOfMemory.
    Context(std::shared_ptr<const Model> model, const ContextPlan& plan, int n_logits,
            int n_branches = 0);

    const Model& model() const { return *model_; }
    Memory& memory() { return memory_; }
    // Most positions of a sequence, as planned.
    int n_ctx() const { return plan_.n_ctx; }
    // Number of sequences; their ids are 0 to n_seq - 1.
    int n_seq() const { return plan_.n_seq; }
    int n_batch() const { return plan_.n_batch; }
    // See ContextPlan.
    bool last_alone() const { return plan_.last_alone; }
    // Whether a batch must hold tokens of only one sequence.
    bool one_by_one() const { return one_by_one_; }
    // Threads of the next decode.
    int n_threads() const;
    // Unless the plan sets the number of threads: uses as many as other programs leave free. The
    // call is cheap.
    void adapt_threads();

    // Decodes a batch and waits for the result. If memory().per_sequence_streams(), llama.cpp
    // decodes sequences with different numbers of tokens, or with a gap between their ids, in parts
    // one after another; snapshots and widths are then those of the parts. After a DecodeError the
    // memory holds some or none of the batch's positions: rewind to the former size.
    void decode(Batch& batch);

    // The same for other input of one sequence, such as an image: `decode` lets llama.cpp decode it
    // and returns the code of llama_decode. The input takes n_positions from `first` on, even if
    // its rows are at fewer positions.
    void decode_by(SequenceId sequence, Position first, int n_positions,
                   const std::function<int(llama_context*)>& decode);

    // The logits [n_vocab] of a row of the last batch; the row must have requested them. The caller
    // may change them. Valid until the next decode.
    std::span<float> logits(int row);

    // Makes later decodes keep hidden states of every token: the inputs of these layers or, if
    // `layers` is empty, the state from which the output is computed. Each layer is from 0 to the
    // number of layers - 1, or to that number if Architecture::last_output is set.
    // hidden_states::available() must be true.
    void keep_states(const std::vector<int>& layers);
    // Length of the states kept per token, all layers together; 0 before keep_states().
    int n_features() const { return n_features_; }
    // Copies the states of a row of the last batch, layer by layer, to `out` [n_features].
    void copy_states(int row, float* out) const;

    // For the rest of this folder.
    llama_context* get() const { return context_.get(); }
    const llama_context_params& params() const { return params_; }

 private:
    void decode_now(Batch& batch);
    void check_decode(int n_rows, const std::function<int(llama_context*)>& decode);

    std::shared_ptr<const Model> model_;
    ContextPlan plan_;
    bool one_by_one_;
    int n_branches_;
    llama_context_params params_;
    llama_context_ptr context_;
    Memory memory_;
    Batch companion_;  // a lone token and its companion: see ContextPlan
    std::vector<int> kept_layers_;
    int n_features_ = 0;
};

}  // namespace specllama
