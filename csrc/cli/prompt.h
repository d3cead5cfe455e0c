#pragma once

#include <string>

#include "cli/options.h"

namespace specllama::cli {

// The default prompt of the default model. CMakeLists.txt creates it from a text of the Python
// package.
extern const char* const kBuiltinPrompt;

// Returns the prompt, which is valid UTF-8: from -p, from a file, or from standard input if "-" is
// given or input is piped (the last two without their last newline). Otherwise, if no model is
// given, the built-in one. Throws UsageError.
std::string read_prompt(const Options& options);

// Throws UsageError if there is no file at a path. what: names it in the error, e.g. "prompt".
void check_file(const std::string& what, const std::string& path);

// Reads the file of --grammar-file. Throws UsageError.
std::string read_grammar(const std::string& path);

// Path of a bundled model. The folder of these models is next to the executable's folder.
std::string bundled_model(const Options& options, const std::string& name);

}  // namespace specllama::cli
