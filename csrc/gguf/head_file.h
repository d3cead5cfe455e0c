#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace specllama {

// What drafts with a model's hidden states: an EAGLE-3 head or an assistant of Gemma 4, in a file
// of its own, or layers of multi-token prediction (MTP) in the model's file. Each function here
// throws ModelError; check_gguf must have found the files to be sound.

// Whether llama.cpp hands out the inputs of the model's layers, which EAGLE-3 heads read, and this
// libllama has the functions for it.
bool gives_layer_inputs(const Header& header);

// Checks that an EAGLE-3 head fits the target: one that does not would fail an assertion in
// llama.cpp. Returns the target's layers whose inputs the head reads.
std::vector<int> check_eagle3(const std::string& path, const Header& target);

// Checks that an assistant fits the target.
void check_assistant(const std::string& path, const Header& target);

// Why the MTP layers of a model's file cannot draft, as the rest of a sentence about the file; "":
// they can.
std::string mtp_fault(const std::string& path);

}  // namespace specllama
