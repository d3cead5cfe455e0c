#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace specllama {

// What drafts with a model's hidden states: an EAGLE-3 head or an assistant of Gemma 4, in a file
// of its own, or layers of multi-token prediction (MTP), in the model's file or one of their own.
// Each function here throws ModelError; check_gguf must have found the files to be sound.

// Checks that an EAGLE-3 head fits the target: one that does not would fail an assertion in
// llama.cpp. Returns the target's layers whose inputs the head reads.
std::vector<int> check_eagle3(const std::string& path, const Header& target);

// Checks that an assistant fits the target.
void check_assistant(const std::string& path, const Header& target);

// Checks that the MTP layers of a file of their own fit the target.
void check_prediction(const Header& head, const Header& target);

// Checks that a file that only drafts (Header::is_head) fits the target.
void check_head(const Header& head, const Header& target);

// Why the MTP layers of a file cannot draft, as the rest of a sentence about the file; "":
// they can.
std::string mtp_fault(const std::string& path);

}  // namespace specllama
