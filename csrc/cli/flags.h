#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/actions.h"

namespace specllama::cli {

struct Flag {
    std::vector<std::string_view> names;
    std::string_view value;  // the value's name in the help; "": the flag takes no value
    std::string_view help;
    Action action;
};

// All flags, in the order of the help.
const std::vector<Flag>& flags();

// The flag with this name; null: there is none.
const Flag* known(const std::string& name);

}  // namespace specllama::cli
