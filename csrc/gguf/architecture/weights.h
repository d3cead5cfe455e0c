#pragma once

#include <cstdint>
#include <string>

#include "gguf/gguf_reader.h"
#include "system/layer_split.h"

namespace specllama {

// Counts the weights of a model that says its block_count.
Weights count_weights(const GgufReader& file);

// Adds so many bytes of a tensor of this name.
void add_weights(const std::string& tensor, std::uint64_t bytes, Weights& weights);

// The layer that a tensor is in; -1: none.
int layer_of(const std::string& tensor);

// Whether a tensor holds weights of experts, of which each token uses a few.
bool is_of_experts(const std::string& tensor);

}  // namespace specllama
