#pragma once

#include <string>

#include "cli/options.h"

namespace specllama::cli {

// The prompt if neither a model nor a prompt is given. CMakeLists.txt makes it from a text of the
// Python package.
extern const char* const kBuiltinPrompt;

// Returns the prompt, which is valid UTF-8: that of -p, of a file, or of standard input if "-" is
// given or something is piped in (the last two without their last newline); else, if no model is
// given either, the built-in one. Throws UsageError.
std::string read_prompt(const Options& options);

// Reads the file of --grammar-file. Throws UsageError.
std::string read_grammar(const std::string& path);

// Path of a bundled model. The folder of these models is beside the executable's folder.
std::string bundled_model(const Options& options, const std::string& name);

}  // namespace specllama::cli
