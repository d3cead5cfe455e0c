#pragma once

#include <string>

#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// Checks the adapters of a model and adds what they take to its header. with_mtp: whether its
// layers of multi-token prediction are loaded. Returns what tells them from others; "": there are
// none.
//
// Throws ModelError, with one sentence for the user, unless all are LoRA adapters of the model, and
// InvalidArgument if there are too many, one is given twice, or a scale is no number. What
// llama.cpp does not check is checked here: a wrong shape would end the process in the first
// decode.
std::string add_adapters(const ModelOptions& options, bool with_mtp, Header& header);

}  // namespace specllama
