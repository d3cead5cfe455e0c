#pragma once

#include <string>

#include "cli/options.h"

namespace specllama::cli {

struct Prompt {
    std::string text;  // in valid UTF-8
    bool bundled = false;
};

// The prompt that the options name: -p, a file or standard input when something is piped into it
// (both without their last newline), or, when no model is named either, the bundled one. Throws
// UsageError.
Prompt read_prompt(const Options& options);

// The text of --grammar-file. Throws UsageError.
std::string read_grammar(const std::string& path);

// Path of a bundled model, or of the prompt for it; they lie beside the executable's folder.
std::string bundled_file(const std::string& name);

}  // namespace specllama::cli
