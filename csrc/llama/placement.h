#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llama-cpp.h"
#include "llama/gguf_file.h"
#include "specllama/config.h"

namespace specllama {

// Tells llama.cpp where a model's weights go, so that the kernels that kernel_for names multiply
// with them. Where a GPU takes part it chooses itself. Of a model that is split over several files
// only the first is known: where special kernels might be wrong for the others, there are none.
class Placement {
 public:
    Placement(const Header& header, const ModelOptions& options);
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

    // Sets what it takes; to be used while this lives.
    void apply(llama_model_params& params) const;

 private:
    bool extra_ = true;
    // Patterns of names, and where what matches them lies.
    std::vector<std::pair<std::string, ggml_backend_buffer_type_t>> places_;
    std::vector<llama_model_tensor_buft_override> overrides_;
};

}  // namespace specllama
