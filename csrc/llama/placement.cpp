#include "llama/placement.h"

#include <algorithm>
#include <map>

#include "ggml-cpp.h"
#include "llama/amx.h"
#include "llama/kernels.h"
#include "llama/offload.h"

namespace specllama {

namespace {

// Where weights lie as they are in the file. (Asked for the CPU's own buffers, llama.cpp would take
// the fastest kernel after all; these are the same under another name.)
ggml_backend_buffer_type_t plain_buffer_type() {
    alignas(64) static char bytes[64];
    const ggml_backend_buffer_ptr buffer(ggml_backend_cpu_buffer_from_ptr(bytes, sizeof(bytes)));
    return ggml_backend_buffer_get_type(buffer.get());
}

std::string escaped(const std::string& name) {
    std::string text;
    for (const char c : name) {
        if (c == '.') text += '\\';
        text += c;
    }
    return text;
}

}  // namespace

Placement::Placement(const Header& header, const ModelOptions& options) {
    if (!offload_devices(options).empty()) {
        extra_ = options.kernels == Kernels::fastest && (!has_amx() || amx_works());
        return;
    }
    // Names of the matrices that lie otherwise than llama.cpp would have them.
    std::map<ggml_backend_buffer_type_t, std::string> names;
    bool all_plain = true;
    for (const Matrix& matrix : header.matrices) {
        Kernel kernel = kernel_for(matrix, options.kernels);
        all_plain &= kernel == Kernel::plain;
        if (kernel == default_kernel(matrix)) continue;
        // Rows are taken from it, too, which only weights as they are allow.
        if (matrix.name == "token_embd.weight") kernel = Kernel::plain;
        std::string& list =
            names[kernel == Kernel::plain ? plain_buffer_type() : buffer_type(kernel, matrix)];
        list += (list.empty() ? "" : "|") + escaped(matrix.name);
    }
    extra_ = !all_plain;
    if (all_plain) return;
    for (const auto& [type, list] : names) patterns_.push_back("^(" + list + ")$");
    std::size_t i = 0;
    for (const auto& [type, list] : names) overrides_.push_back({patterns_[i++].c_str(), type});
    overrides_.push_back({nullptr, nullptr});
}

void Placement::apply(llama_model_params& params) const {
    params.use_extra_bufts = extra_;
    if (!overrides_.empty()) params.tensor_buft_overrides = overrides_.data();
}

}  // namespace specllama
