#pragma once

#include <string>
#include <vector>

#include "llama/gguf_file.h"
#include "llama/model.h"

namespace specllama {

// Whether a file holds an EAGLE-3 head, which drafts from the states of another file's layers.
bool is_eagle3(const Header& header);

// Whether llama.cpp tells what goes into the layers of such models, as EAGLE-3 heads want it, and
// this libllama has the functions for it.
bool tells_layer_inputs(const std::string& architecture);

// Checks that an EAGLE-3 head, whose file check_gguf found to be sound, fits the target: what does
// not, llama.cpp would meet with an assertion. Returns the layers whose inputs it reads. Throws
// ModelError.
std::vector<int> check_eagle3(const std::string& path, const Model& target);

// Why a model's file brings no layers of multi-token prediction (MTP) along that can draft, as the
// rest of a sentence about the file; "" if it does. Throws ModelError, as check_gguf.
std::string mtp_fault(const std::string& path);

}  // namespace specllama
