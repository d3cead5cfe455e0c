#pragma once

#include <string>

#include "ggml.h"
#include "specllama/session_options.h"

namespace specllama {

// The name of the KV memory's type: the one in the options, otherwise "f16".
std::string kv_type_name(const ContextOptions& options);

struct KvTypes {
    ggml_type keys;
    ggml_type values;
};

// The types of a name: one for both, or those of keys and values, such as "bf16/f16". Throws
// InvalidArgument if a KV memory cannot have them. prefix: put before the option's name in the
// message, such as "draft_".
KvTypes kv_types(const std::string& name, const std::string& prefix = "");

}  // namespace specllama
