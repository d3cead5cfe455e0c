#pragma once

#include <string>

#include "ggml.h"
#include "specllama/config.h"

namespace specllama {

// The name of the KV memory's type: the one that the options name, else "f16".
std::string kv_type_name(const ContextOptions& options);

// The type of that name. Throws InvalidArgument if a KV memory cannot have it. prefix: put before
// the option's name in the message, such as "draft_".
ggml_type kv_type(const std::string& name, const std::string& prefix = "");

}  // namespace specllama
