#pragma once

#include <string>

#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// Checks the adapters of a model and adds their weights to its header. with_mtp: whether its layers
// of multi-token prediction are loaded. Returns a key that identifies the adapters; "": none.
//
// Throws ModelError, with one sentence for the user, unless all are LoRA adapters of the model, and
// InvalidArgument if there are too many, one is given twice, or a scale is not a finite number.
// Includes checks that llama.cpp lacks: a wrong shape would end the process in the first decode.
std::string add_adapters(const ModelOptions& options, bool with_mtp, Header& header);

}  // namespace specllama
