#pragma once

#include <string>

#include <llama.h>

#include "specllama/session_options.h"

namespace specllama {

// Writes checked options to llama.cpp's parameters of a context.
void apply(const RopeOptions& options, llama_context_params& params);

// What is not as the model's file says, as parts of a sentence; "": all is.
std::string in_words(const RopeOptions& options);

}  // namespace specllama
