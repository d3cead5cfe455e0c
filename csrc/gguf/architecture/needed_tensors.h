#pragma once

#include "gguf/gguf_reader.h"

namespace specllama {

// Throws ModelError if a tensor is missing that llama.cpp treats as optional but uses, in some
// architectures. The file must state its architecture and block_count. Layers of multi-token
// prediction are checked by mtp_fault.
void check_needed_tensors(const GgufReader& file);

}  // namespace specllama
