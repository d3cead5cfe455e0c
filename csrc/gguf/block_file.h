#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "specllama/types.h"

namespace specllama {

// Format of a block drafter: a model that reads the inputs of some of its target's layers and
// drafts several tokens in one decode.
struct BlockFormat {
    // dflash: each row of a block predicts independently. dflash2: rows give candidates, and scores
    // for each pair with a candidate of the previous row. dspark: the logits of a row depend on the
    // most likely token of the previous row.
    enum class Kind { dflash, dflash2, dspark };

    Kind kind = Kind::dflash;
    std::vector<int> layers;            // layers of the target whose inputs are read
    int n_block = 0;                    // most rows of a block
    bool predicts_from_anchor = false;  // whether the row of the last token also drafts
    bool causal = false;
    Token mask = 0;
    int top_k = 0;  // for dflash2: candidates of a row
    bool has_confidence =
        false;  // for dspark: whether it estimates the probability that a row is right

    // The first row of a block that drafts.
    int first_row() const { return predicts_from_anchor ? 0 : 1; }
    // Maximum number of tokens of a draft.
    int n_draft() const { return n_block - first_row(); }
};

// Checks that a block drafter fits the target: another one would fail an assertion in llama.cpp.
// Throws ModelError. check_gguf must have accepted both files.
BlockFormat check_block_drafter(const std::string& path, const Header& target);

}  // namespace specllama
