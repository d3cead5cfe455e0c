#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llama-cpp.h"
#include "runtime/batch.h"
#include "runtime/context.h"
#include "runtime/model.h"
#include "specllama/session_options.h"
#include "specllama/types.h"

namespace specllama {

// The context of a head. It decodes pairs of a token and the state before it, and gives the logits
// of the next token and the state that goes with it. It has a KV memory of its own, in which
// positions count pairs. Only one thread at a time may use it.
class HeadContext {
 public:
    // eagle3: an EAGLE-3 head, which makes its states from the target's states of several layers.
    // mtp: layers of multi-token prediction, in the target's own file or another one; they read the
    // target's last state.
    // assistant: a model that reads the target's last state and its KV memory, and writes none.
    enum class Kind { eagle3, mtp, assistant };

    // options: those of an assistant are its target's. target: a head without embeddings or an
    // output of its own uses the target's. It must outlive this. Throws InvalidArgument and
    // OutOfMemory.
    HeadContext(std::shared_ptr<const Model> model, Kind kind, const ContextOptions& options,
                const Context& target);

    const Model& model() const { return *model_; }
    // Length of a state.
    int n_state() const { return n_state_; }
    // Most rows of a batch; at least n_layers() per sequence.
    int n_batch() const { return n_batch_; }
    // Layers, each of which drafts one token; 1: a layer that drafts all tokens.
    int n_layers() const { return n_layers_; }

    // Makes states [n][n_state] from features [n][Context::n_features]; n is at most n_batch.
    // Throws DecodeError, as `decode` does.
    void encode(const float* features, int n, float* states);

    // clear() drops the pairs to decode next. add() adds one, copies its state [n_state], and
    // returns its row.
    void clear();
    int add(Token token, const float* state, Position position, SequenceId sequence, bool logits);
    // Decodes these pairs with one of the layers. Each layer has a memory of its own, but all share
    // the positions: before the next layer decodes the same pairs, they must be cut. After a
    // DecodeError the memory must be cut to what was there before.
    void decode(int layer = 0);
    // See Context::adapt_threads.
    void adapt_threads();

    // The logits and the state of a row that asked for logits; valid until the next decode or
    // encode.
    std::span<float> logits(int row);
    const float* state(int row) const;

    // Positions that the memory holds of a sequence.
    int size(SequenceId sequence) const;
    // Cuts a sequence to its first n pairs.
    void cut(SequenceId sequence, int n);
    // Replaces the pairs of `to` by the first n pairs of `from`.
    void copy(SequenceId from, SequenceId to, int n);

 private:
    std::shared_ptr<const Model> model_;
    Kind kind_;
    int n_threads_;  // as the options say
    llama_context_ptr context_;
    int n_state_;
    int n_layers_;
    int n_batch_;
    Batch batch_;
    std::vector<float> states_;  // [n_batch][n_state] of the batch
};

}  // namespace specllama
