#pragma once

#include <cstdint>
#include <string>

#include "gguf/gguf_reader.h"
#include "system/layer_split.h"

namespace specllama {

// Counts the weights of a model. The file must state its block_count.
Weights count_weights(const GgufReader& file);

// Adds the bytes of a tensor of this name.
void add_weights(const std::string& tensor, std::uint64_t bytes, Weights& weights);

// The layer of a tensor; -1: none.
int layer_of(const std::string& tensor);

// Whether a tensor has weights of experts, of which each token uses a few.
bool is_of_experts(const std::string& tensor);

}  // namespace specllama
