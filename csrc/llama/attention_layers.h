#pragma once

#include <cstdint>
#include <string>

#include "llama/gguf_reader.h"
#include "llama/recurrent_layers.h"

namespace specllama {

// The layers of a model file that attend, and what the KV memory keeps of a token in them.
class AttentionLayers {
 public:
    // The file must name its architecture and say its block_count and embedding_length.
    AttentionLayers(const GgufReader& file, const RecurrentLayers& recurrent);

    // How many tokens sliding windows reach back; 0: no layer has one.
    int window() const { return window_; }
    // Numbers that are kept of each token: in the layers that see the whole text, and in those with
    // a sliding window, which keep no more tokens than it reaches and a batch.
    double numbers() const { return numbers_; }
    double numbers_in_windows() const { return numbers_in_windows_; }

 private:
    int window_ = 0;
    double numbers_ = 0;
    double numbers_in_windows_ = 0;
};

}  // namespace specllama
