#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace specllama::cli {

// Applies a flag with its value. May throw a UsageError whose message continues a sentence that
// begins with the flag's name.
using Action = std::function<void(Options&, const std::string& value)>;

struct Flag {
    std::vector<std::string> names;
    std::string value;   // the value's name in the help; "": the flag takes no value
    std::string help;    // one line
    std::string option;  // the name of the option in the library's messages; "": none
    Action action;
};

// All flags in the order of the help: those of this program, then those of the library's options.
const std::vector<Flag>& flags();

// The flag with this name; null: none.
const Flag* known(const std::string& name);

}  // namespace specllama::cli
