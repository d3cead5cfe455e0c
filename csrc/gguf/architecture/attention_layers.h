#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/architecture/recurrent_layers.h"
#include "gguf/gguf_reader.h"

namespace specllama {

// The attention layers of a model file, and the numbers that the KV memory keeps of a token in
// them.
class AttentionLayers {
 public:
    // The file must state its architecture, block_count and embedding_length.
    AttentionLayers(const GgufReader& file, const RecurrentLayers& recurrent);

    // Length of the sliding windows in tokens; 0: no layer has one.
    int window() const { return window_; }
    // [layer]: numbers that an attention layer keeps of each token. windows: those kept only for
    // the tokens of a window and a batch. Layers of multi-token prediction are not included, except
    // where llama.cpp reserves memory for them; this is added to the last layer.
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
