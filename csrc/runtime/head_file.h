#pragma once

#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "runtime/model.h"

namespace specllama {

// Whether a file holds something that only drafts for another model: one of the next two.
bool is_head(const Header& header);

// Whether a file holds an EAGLE-3 head, which drafts from the states of another model's layers.
bool is_eagle3(const Header& header);

// Whether a file holds an assistant of Gemma 4, which drafts from the states and the KV memory of
// another model.
bool is_assistant(const Header& header);

// Whether llama.cpp hands out the inputs of layers for this architecture, which EAGLE-3 heads read,
// and this libllama has the functions for it.
bool tells_layer_inputs(const std::string& architecture);

// Checks that an EAGLE-3 head fits the target: one that does not would fail an assertion in
// llama.cpp. check_gguf must have found the head's file to be sound. Returns the target's layers
// whose inputs the head reads. Throws ModelError.
std::vector<int> check_eagle3(const std::string& path, const Model& target);

// Checks that an assistant fits the target. check_gguf must have found its file to be sound. Throws
// ModelError.
void check_assistant(const std::string& path, const Model& target);

// Why a model's file has no layers of multi-token prediction (MTP) that can draft, as the rest of a
// sentence about the file; "": it has them. check_gguf must have found the file to be sound.
// Throws ModelError if a part of the model cannot be read.
std::string mtp_fault(const std::string& path);

}  // namespace specllama
