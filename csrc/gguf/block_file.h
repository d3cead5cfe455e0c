#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "specllama/types.h"

namespace specllama {

// How a block drafter drafts: a model that reads the inputs of some of its target's layers and
// drafts several tokens in one decode.
struct BlockFormat {
    // dflash: every row of a block predicts by itself. dflash2: rows name candidates, and how well
    // each follows each candidate of the row before. dspark: the logits of a row depend on the most
    // likely token of the row before.
    enum class Kind { dflash, dflash2, dspark };

    Kind kind = Kind::dflash;
    std::vector<int> layers;            // of the target, whose inputs are read
    int n_block = 0;                    // most rows of a block
    bool predicts_from_anchor = false;  // whether the row of the last token drafts, too
    bool causal = false;
    Token mask = 0;
    int top_k = 0;                // of a dflash2: candidates of a row
    bool has_confidence = false;  // of a dspark: whether it says how likely a row is right

    // The first row of a block that drafts a token.
    int first_row() const { return predicts_from_anchor ? 0 : 1; }
    // Most tokens of a draft.
    int n_draft() const { return n_block - first_row(); }
};

// Checks that a block drafter fits the target: one that does not would fail an assertion in
// llama.cpp. Throws ModelError; check_gguf must have found the files to be sound.
BlockFormat check_block_drafter(const std::string& path, const Header& target);

}  // namespace specllama
