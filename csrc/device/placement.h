#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/kernels.h"
#include "gguf/gguf_file.h"
#include "llama-cpp.h"
#include "specllama/session_options.h"

namespace specllama {

// Sets the buffers of a model's weights in llama.cpp, so that the kernels of kernel_for are used,
// and experts stay in main memory (ModelOptions::n_cpu_moe). With a GPU, llama.cpp chooses the
// buffers; special kernels are then allowed only if none of them can be wrong, or violate
// Kernels::batch_invariant.
class Placement {
 public:
    Placement(const Header& header, const ModelOptions& options, Kernels kernels);
    Placement(const Placement&) = delete;
    Placement& operator=(const Placement&) = delete;

    // Sets fields of `params`. They point into this object, which must outlive their use.
    void apply(llama_model_params& params);

 private:
    void place(std::string pattern, ggml_backend_buffer_type_t type);

    bool extra_ = true;
    // Patterns of tensor names, and the buffer types of the matching tensors.
    std::vector<std::pair<std::string, ggml_backend_buffer_type_t>> places_;
    std::vector<llama_model_tensor_buft_override> overrides_;
};

}  // namespace specllama
