#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace specllama::cli {

struct Flag {
    std::vector<std::string_view> names;
    std::string_view value;  // what to call it in the help; "" for a flag without one
    std::string_view help;
    // Takes its value into the options. The message of the UsageError it throws goes on behind the
    // flag's name.
    std::function<void(Options&, const std::string& value)> action;
};

// All, in the order of the help.
const std::vector<Flag>& flags();

// The flag of this name; null: there is none.
const Flag* known(const std::string& name);

}  // namespace specllama::cli
