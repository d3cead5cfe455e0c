#pragma once

#include "gguf/gguf_reader.h"

namespace specllama {

// Throws ModelError if a tensor is missing that llama.cpp does not ask for, but uses: of some
// architectures it loads what there is of a layer. The file must name its architecture and say its
// block_count. Layers of multi-token prediction are checked by mtp_fault.
void check_needed_tensors(const GgufReader& file);

}  // namespace specllama
