#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/kernels.h"
#include "gguf/gguf_file.h"
#include "llama-cpp.h"
#include "specllama/session_options.h"

namespace specllama {

// Tells llama.cpp where a model's weights go, so that the kernels that kernel_for names multiply
// with them, and that experts stay in main memory (ModelOptions::n_cpu_moe). If a GPU takes part,
// llama.cpp chooses itself; special kernels are then allowed only if none of them can be wrong, or
// give other bits than Kernels::batch_invariant demands.
class Placement {
 public:
    Placement(const Header& header, const ModelOptions& options, Kernels kernels);
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

    // Sets the fields concerned. They point into this object, which must outlive their use.
    void apply(llama_model_params& params);

 private:
    void place(std::string pattern, ggml_backend_buffer_type_t type);

    bool extra_ = true;
    // Patterns of tensors' names, and where the tensors that match them lie.
    std::vector<std::pair<std::string, ggml_backend_buffer_type_t>> places_;
    std::vector<llama_model_tensor_buft_override> overrides_;
};

}  // namespace specllama
