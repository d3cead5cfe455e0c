#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace specllama {

// Heads draft from a model's hidden states: an EAGLE-3 head or a Gemma 4 assistant, in a separate
// file, or layers of multi-token prediction (MTP), in the model's file or a separate one. Each
// function here throws ModelError. check_gguf must have accepted the files.

// Checks that an EAGLE-3 head fits the target: another one would fail an assertion in llama.cpp.
// Returns the target's layers whose inputs the head reads.
std::vector<int> check_eagle3(const std::string& path, const Header& target);

// Checks that an assistant fits the target.
void check_assistant(const std::string& path, const Header& target);

// Checks that the MTP layers of a separate file fit the target.
void check_prediction(const Header& head, const Header& target);

// Checks that a head's file (Header::is_head) fits the target.
void check_head(const Header& head, const Header& target);

// Why the MTP layers of a file cannot draft, as the rest of a sentence about the file; "":
// they can.
std::string mtp_fault(const std::string& path);

}  // namespace specllama
