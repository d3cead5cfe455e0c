#pragma once

#include <string>

#include "llama/gguf_reader.h"
#include "system/division.h"

namespace specllama {

// Counts the weights of a model that says its block_count.
Weights count_weights(const GgufReader& file);

// Whether a tensor holds weights of experts, of which each token uses a few.
bool is_of_experts(const std::string& tensor);

}  // namespace specllama
