#pragma once

#include <string>

#include <llama.h>

#include "specllama/config.h"

namespace specllama {

// Throws InvalidArgument if an option is out of range.
void check(const RopeOptions& options);

// Writes checked options to llama.cpp's parameters of a context.
void apply(const RopeOptions& options, llama_context_params& params);

// What is not as the model's file says, as parts of a sentence; "": all is.
std::string in_words(const RopeOptions& options);

}  // namespace specllama
