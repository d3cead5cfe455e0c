#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "llama.h"
#include "specllama/types.h"

namespace specllama {

// Tokens to decode at once, possibly of several sequences. Refilling it does not allocate.
class Batch {
 public:
    explicit Batch(int capacity);

    void clear() { n_ = 0; }
    int size() const { return n_; }

    // Adds a token and returns its row. logits: whether the row requests its logits. The batch must
    // not be full.
    int add(Token token, Position position, SequenceId sequence, bool logits);
    // The same for a token with several ids. ids: part of Memory::ids; the batch keeps a pointer to
    // them.
    int add(Token token, Position position, std::span<SequenceId> ids, bool logits);

    Token token(int row) const { return tokens_[row]; }
    Position position(int row) const { return positions_[row]; }
    // The first id of a row's token.
    SequenceId sequence(int row) const { return *ids_[row]; }

    // Whether a row requests its logits, and the number of rows that do. ask() sets it for a row.
    bool asks(int row) const { return logits_[row] != 0; }
    int n_asking() const;
    void ask(int row, bool logits) { logits_[row] = logits ? 1 : 0; }

    // The batch as llama.cpp reads it. vectors: one for each row in addition to its token; null:
    // none. The result points into this object, and is valid until the object changes.
    llama_batch view(float* vectors = nullptr);
    // The same with vectors instead of tokens.
    llama_batch view_without_tokens(float* vectors);

 private:
    int n_ = 0;
    std::vector<Token> tokens_;
    std::vector<Position> positions_;
    std::vector<SequenceId> sequences_;  // [row]: the id, if the token has only one
    std::vector<SequenceId*> ids_;
    std::vector<std::int32_t> n_ids_;
    std::vector<std::int8_t> logits_;
};

}  // namespace specllama
