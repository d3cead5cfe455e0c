#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llama-cpp.h"
#include "llama/context.h"
#include "llama/model.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// What a head computes with. It decodes pairs, a token and the state before it, and gives the
// logits of the next token and the state that goes with it. Its KV memory is its own; the positions
// in it count pairs. Not for two threads at once.
class HeadContext {
 public:
    // An EAGLE-3 head makes its states from those of several layers; layers of multi-token
    // prediction (MTP), in the target's own file, take the target's last one.
    enum class Kind { eagle3, mtp };

    // target: whose embeddings and output a head uses that has none of its own; it must outlive
    // this. Throws InvalidArgument and OutOfMemory.
    HeadContext(std::shared_ptr<const Model> model, Kind kind, const ContextOptions& options,
                const Context& target);

    const Model& model() const { return *model_; }
    // Numbers of a state.
    int n_state() const { return n_state_; }
    // Most rows at once, at least one for each sequence.
    int n_batch() const { return n_batch_; }

    // Makes states [n][n_state] of features [n][Context::n_features], n at most n_batch.
    // Throws DecodeError, as `decode` does.
    void encode(const float* features, int n, float* states);

    // The pairs to decode next. `add` copies the state [n_state] and returns the row.
    void clear();
    int add(Token token, const float* state, Position position, SequenceId sequence, bool logits);
    // On DecodeError the memory is to be cut to what was there before.
    void decode();

    // Of a row that asked for logits; valid until the next decode or encode.
    std::span<float> logits(int row);
    const float* state(int row) const;

    // Keeps the first n pairs of a sequence.
    void cut(SequenceId sequence, int n);
    // Replaces a sequence's pairs by the first n of another one.
    void copy(SequenceId from, SequenceId to, int n);

 private:
    std::shared_ptr<const Model> model_;
    Kind kind_;
    llama_context_ptr context_;
    int n_state_;
    int n_batch_;
    Batch batch_;
    std::vector<float> states_;  // [n_batch][n_state] of the batch
};

}  // namespace specllama
