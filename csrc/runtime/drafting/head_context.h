#pragma once

#include <memory>
#include <vector>

#include "runtime/drafting/draft_context.h"

namespace specllama {

// The context of a head. It decodes pairs of a token and the state before it, and gives the logits
// of the next token and the state that goes with it. The positions of its memory count pairs.
class HeadContext : public DraftContext {
 public:
    // eagle3: an EAGLE-3 head, which makes its states from the target's states of several layers.
    // mtp: layers of multi-token prediction, in the target's own file or another one; they read the
    // target's last state.
    // assistant: a model that reads the target's last state and its KV memory, and writes none.
    enum class Kind { eagle3, mtp, assistant };

    // options: those of an assistant are its target's. target: a head without embeddings or an
    // output of its own uses the target's. It must outlive this. A batch has room for n_layers()
    // rows per sequence. Throws InvalidArgument, ModelError and OutOfMemory.
    HeadContext(const std::shared_ptr<const Model>& model, Kind kind, const ContextOptions& options,
                const Context& target);

    // Layers, each of which drafts one token; 1: a layer that drafts all tokens.
    int n_layers() const { return n_layers_; }

    // Makes states [n][n_state] from features [n][Context::n_features]; n is at most n_batch.
    // Throws DecodeError, as `decode` does.
    void encode(const float* features, int n, float* states);

    // Adds a pair to decode next, copies its state [n_state], and returns its row.
    int add(Token token, const float* state, Position position, SequenceId sequence, bool logits);
    // Decodes the pairs with one of the layers. Each layer has a memory of its own, but all share
    // the positions: before the next layer decodes the same pairs, they must be cut. After a
    // DecodeError the memory must be cut to what was there before.
    void decode(int layer = 0);

 private:
    Kind kind_;
    int n_layers_;
    std::vector<float> states_;  // [n_batch][n_state] of the batch
};

}  // namespace specllama
