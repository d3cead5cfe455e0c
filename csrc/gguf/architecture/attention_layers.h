#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/architecture/recurrent_layers.h"
#include "gguf/gguf_reader.h"

namespace specllama {

// The layers of a model file that attend, and what the KV memory keeps of a token in them.
class AttentionLayers {
 public:
    // The file must name its architecture and say its block_count and embedding_length.
    AttentionLayers(const GgufReader& file, const RecurrentLayers& recurrent);

    // How many tokens sliding windows reach back; 0: no layer has one.
    int window() const { return window_; }
    // [layer]: numbers that it keeps of each token, if it has attention; `windows` keep no more
    // tokens than they reach and a batch. Layers of multi-token prediction have none here, except
    // where llama.cpp sets memory aside for them: the last layer then has it.
    struct Kept {
        double whole = 0;
        double windows = 0;
    };
    const std::vector<Kept>& kept() const { return kept_; }

 private:
    int window_ = 0;
    std::vector<Kept> kept_;
};

}  // namespace specllama
