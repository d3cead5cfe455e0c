#pragma once

#include <cstdint>
#include <string>

#include "specllama/config.h"

namespace specllama {

struct AdapterFile {
    std::uint64_t bytes = 0;        // that it takes
    std::uint64_t fingerprint = 0;  // of its content
};

// Throws ModelError, with one sentence for the user, unless the adapter is a LoRA adapter of the
// model at `model`, and InvalidArgument if its scale is no number. What llama.cpp does not check is
// checked here: a wrong shape would end the process in the first decode.
AdapterFile check_adapter(const LoraAdapter& adapter, const std::string& model);

}  // namespace specllama
