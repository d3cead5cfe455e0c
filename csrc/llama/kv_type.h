#pragma once

#include <string>

#include "ggml.h"

namespace specllama {

// The type of the KV memory that a user names, e.g. "f16" or "q8_0". Throws InvalidArgument.
ggml_type kv_type(const std::string& name);

}  // namespace specllama
