#pragma once

#include <memory>
#include <span>
#include <vector>

#include "llama-cpp.h"
#include "llama/memory.h"
#include "llama/model.h"
#include "specllama/config.h"
#include "specllama/types.h"

namespace specllama {

// Tokens to decode at once, possibly of several sequences. Filled again and again without
// allocating.
class Batch {
 public:
    explicit Batch(int capacity);

    void clear() { n_ = 0; }
    int size() const { return n_; }

    // Returns the row, for Context::logits if `logits` is set. The batch must not be full.
    int add(Token token, Position position, SequenceId sequence, bool logits);
    // The same for a token that several ids share, see Memory::ids, where these are.
    int add(Token token, Position position, std::span<SequenceId> ids, bool logits);

 private:
    friend class Context;
    friend class HeadContext;

    int n_ = 0;
    std::vector<Token> tokens_;
    std::vector<Position> positions_;
    std::vector<SequenceId> sequences_;  // [i]: of a token that has but one
    std::vector<SequenceId*> ids_;
    std::vector<std::int32_t> n_ids_;
    std::vector<std::int8_t> logits_;
};

// Throws InvalidArgument when a number is out of range.
void check(const ContextOptions& options);

// Snapshots of a recurrent state that a context asks for; how many it has is up to the
// architecture.
int snapshots(const ContextOptions& options, int n_logits);

// A model's KV memory and what computing takes. Not for two threads at once.
class Context {
 public:
    // n_logits: most rows of a sequence in a batch that may ask for logits. n_branches: side
    // branches of a sequence that are wished for; memory() says how many there are.
    // n_ctx must be settled. Throws InvalidArgument and OutOfMemory.
    Context(std::shared_ptr<const Model> model, const ContextOptions& options, int n_logits,
            int n_branches = 0);

    const Model& model() const { return *model_; }
    Memory& memory() { return memory_; }
    // Positions that a sequence may take, as asked for.
    int n_ctx() const { return options_.n_ctx; }
    // Sequences that there is room for: from 0 on.
    int n_seq() const { return options_.n_seq; }
    int n_batch() const { return options_.n_batch; }
    int n_threads() const;

    // Decodes a batch and waits for it. Where memory().split(), sequences of different numbers of
    // tokens, or with a gap between them, are decoded one part after another, and snapshots and
    // widths are those of the parts. On DecodeError the memory holds some of its positions or
    // none: rewind to what was there before.
    void decode(Batch& batch);

    // The logits [n_vocab] of a row of the last batch that asked for them; the caller may change
    // them. Valid until the next decode.
    std::span<float> logits(int row);

    // Has decodes keep hidden states of every token from now on: what goes into these layers, each
    // from 0 to below the number of layers; or, with none, what the output is computed from.
    // staging::available() must be true.
    void keep_states(const std::vector<int>& layers);
    // Numbers of a token's states, once they are kept.
    int n_features() const { return n_features_; }
    // Copies the states of a row of the last batch, one layer after another, to `out` [n_features].
    void copy_states(int row, float* out) const;

    // For the rest of this folder.
    llama_context* get() const { return context_.get(); }

 private:
    void decode_now(Batch& batch);

    std::shared_ptr<const Model> model_;
    ContextOptions options_;
    int n_branches_;
    llama_context_ptr context_;
    Memory memory_;
    Batch companion_;  // a lone token and the one beside it
    std::vector<int> kept_layers_;
    int n_features_ = 0;
};

}  // namespace specllama
