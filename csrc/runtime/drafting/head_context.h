#pragma once

#include <memory>
#include <vector>

#include "runtime/drafting/draft_context.h"

namespace specllama {

// The context of a head. It decodes pairs of a token and the state before it into the logits of the
// next token and its state. The positions of its memory count pairs.
class HeadContext : public DraftContext {
 public:
    // eagle3: an EAGLE-3 head, which makes its states from the target's states of several layers.
    // mtp: layers of multi-token prediction, in the target's own file or another one; they read the
    // target's last state. assistant: a model that reads the target's last state and its KV memory,
    // and writes no memory.
    enum class Kind { eagle3, mtp, assistant };

    // options: for an assistant, its target's. target: supplies embeddings and output if the head
    // has none. It must outlive this. A batch has room for n_layers() rows per sequence. Throws
    // InvalidArgument, ModelError and OutOfMemory.
    HeadContext(const std::shared_ptr<const Model>& model, Kind kind, const ContextOptions& options,
                const Context& target);

    // Number of layers, each of which drafts one token; 1: one layer drafts all tokens.
    int n_layers() const { return n_layers_; }

    // Makes states [n][n_state] from features [n][Context::n_features]; n is at most n_batch.
    // Throws DecodeError, like `decode`.
    void encode(const float* features, int n, float* states);

    // Adds a pair for the next decode, copies its state [n_state], and returns its row.
    int add(Token token, const float* state, Position position, SequenceId sequence, bool logits);
    // Decodes the pairs with one of the layers. Each layer has a separate memory, but all share the
    // positions: cut the pairs before the next layer decodes them. After a DecodeError the memory
    // must be cut to its former size.
    void decode(int layer = 0);

 private:
    Kind kind_;
    int n_layers_;
    std::vector<float> states_;  // [n_batch][n_state] of the batch
};

}  // namespace specllama
