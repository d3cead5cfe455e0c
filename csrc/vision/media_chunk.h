#pragma once

#include <memory>
#include <string>
#include <vector>

#include "specllama/media.h"
#include "specllama/types.h"

struct mtmd_input_chunk;

namespace specllama {

// Immutable.
class MediaChunk {
 public:
    // Takes ownership of libmtmd's chunk, the one with index `part` of a medium. id: of the medium.
    MediaChunk(mtmd_input_chunk* chunk, const std::string& id, int part);
    ~MediaChunk();
    MediaChunk(const MediaChunk&) = delete;
    MediaChunk& operator=(const MediaChunk&) = delete;

    // Cells in the KV memory, and positions by which it moves the next token.
    int n_rows() const { return n_rows_; }
    int n_positions() const { return static_cast<int>(ids_.size()); }
    // Its ids among the tokens of a prompt, [n_positions].
    TokenSpan ids() const { return ids_; }

    // Identifies the content.
    const std::string& key() const { return key_; }

    // For the rest of this folder.
    const mtmd_input_chunk* get() const { return chunk_; }

 private:
    mtmd_input_chunk* chunk_;
    std::string key_;
    int n_rows_;
    std::vector<Token> ids_;
};

}  // namespace specllama
