#pragma once

#include <string>

#include "cli/options.h"

namespace specllama::cli {

// What is continued when neither a model nor a prompt is named: made from a text of the Python
// package, see CMakeLists.txt.
extern const char* const kBuiltinPrompt;

// The prompt that the options name, in valid UTF-8: -p, a file or standard input when something is
// piped into it (both without their last newline), or, when no model is named either, the
// built-in one. Throws UsageError.
std::string read_prompt(const Options& options);

// The text of --grammar-file. Throws UsageError.
std::string read_grammar(const std::string& path);

// Path of a bundled model; they lie beside the executable's folder.
std::string bundled_model(const std::string& name);

}  // namespace specllama::cli
