#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gguf/block_file.h"
#include "runtime/drafting/draft_context.h"

namespace specllama {

// The context of a block drafter. Its memory holds the target's states, one position per token.
// After these it decodes blocks, which must be cut off again. A block is the last token of the text
// followed by mask tokens; its rows give the tokens of a draft.
class BlockContext : public DraftContext {
 public:
    // n_draft: tokens of a draft; the format's block must have enough rows. target: supplies
    // embeddings and output if the model has none. It must outlive this. Throws InvalidArgument,
    // ModelError and OutOfMemory.
    BlockContext(std::shared_ptr<const Model> model, const BlockFormat& format, int n_draft,
                 const ContextOptions& options, const Context& target);

    // Adds the target's states of a token, [Context::n_features]. The batch must not be full, and
    // must not hold blocks.
    void add_states(const float* features, Position position, SequenceId sequence);
    bool is_full() { return batch().size() == n_batch(); }
    // Writes the added states, if any, into the memory, and clears the batch. After a DecodeError
    // the memory must be cut to its former size.
    void inject();

    // Adds a block; the batch must not hold states or a block of this sequence. Returns the row of
    // its first drafted token; the others follow.
    int add_block(Token last, Position position, SequenceId sequence);
    // Decodes the blocks.
    void decode();

    // The logits [n_vocab] of token i of the draft with this first row, after the tokens drafted
    // before it. The caller may change them. Valid until the next call.
    std::span<float> logits(int first_row, int i, TokenSpan drafted);
    // Probability that this token is right, by the drafter's confidence head; nullopt: it has no
    // such head.
    std::optional<float> confidence(int first_row, int i) const;

 private:
    std::span<float> lattice_logits(int row, std::optional<Token> before);

    BlockFormat format_;
    int n_block_;
    int n_features_;
    std::vector<float> features_;      // [n_batch][n_features] of the batch
    std::vector<Position> positions_;  // of the batch, if llama.cpp needs several per row
    std::vector<float> logits_;        // [n_vocab]: made from a lattice
};

}  // namespace specllama
