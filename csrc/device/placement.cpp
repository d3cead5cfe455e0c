#include "device/placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "device/amx.h"
#include "device/offload.h"
#include "ggml-cpp.h"

namespace specllama {

namespace {

// The buffer type for weights as in the file. For the CPU's usual buffer type, llama.cpp would
// still use the fastest kernel; this is the same type under another name.
ggml_backend_buffer_type_t plain_buffer_type() {
    alignas(64) static char bytes[64];
    const ggml_backend_buffer_ptr buffer(ggml_backend_cpu_buffer_from_ptr(bytes, sizeof(bytes)));
    return ggml_backend_buffer_get_type(buffer.get());
}

using Names = std::set<std::string>;

std::string any_of(const Names& names) {
    std::string text;
    for (const std::string& name : names) {
        text += text.empty() ? '(' : '|';
        for (const char c : name) {
            if (std::string_view(".^$|()[]{}*+?\\").find(c) != std::string_view::npos) text += '\\';
            text += c;
        }
    }
    return text + ')';
}

// Regular expressions for names. llama.cpp compiles each expression again for each tensor, so they
// should be few and short: names "blk.N.what" share one for all "what" of the same layers N.
std::vector<std::string> patterns(const Names& names) {
    std::map<std::string, Names> layers;  // ["what"]: its layers
    Names others;
    for (const std::string& name : names) {
        const auto dot = name.find('.', 4);
        if (name.starts_with("blk.") && dot != std::string::npos)
            layers[name.substr(dot + 1)].insert(name.substr(4, dot - 4));
        else
            others.insert(name);
    }
    std::map<Names, Names> by_layers;
    for (const auto& [what, of_layers] : layers) by_layers[of_layers].insert(what);
    std::vector<std::string> result;
    result.reserve(by_layers.size() + 1);
    for (const auto& [of_layers, whats] : by_layers)
        result.push_back("^blk\\." + any_of(of_layers) + "\\." + any_of(whats) + "$");
    if (!others.empty()) result.push_back("^" + any_of(others) + "$");
    return result;
}

// A regular expression for the experts' weights of the first n layers.
std::string experts_of_first(std::size_t n) {
    std::string layers;
    for (std::size_t layer = 0; layer < n; ++layer)
        layers += (layers.empty() ? "" : "|") + std::to_string(layer);
    return "^blk\\.(" + layers + ")\\..*exps\\.";
}

}  // namespace

Placement::Placement(const Header& header, const ModelOptions& options, Kernels kernels) {
    if (!offload_devices(options).empty()) {
        extra_ = kernels == Kernels::fastest &&
                 (!has_amx() || std::ranges::all_of(header.matrices, [](const Matrix& matrix) {
                     return default_kernel(matrix) != Kernel::amx ||
                            kernel_for(matrix, Kernels::fastest) == Kernel::amx;
                 }));
        const auto n =
            std::min<std::size_t>(options.n_cpu_moe.value_or(0), header.weights.layers.size());
        if (n > 0) place(experts_of_first(n), ggml_backend_cpu_buffer_type());
        return;
    }
    // The matrices with other buffers than llama.cpp's defaults.
    std::map<ggml_backend_buffer_type_t, Names> names;
    bool all_plain = true;
    for (const Matrix& matrix : header.matrices) {
        const Kernel kernel = kernel_for(matrix, kernels);
        all_plain &= kernel == Kernel::plain;
        if (kernel == default_kernel(matrix)) continue;
        names[kernel == Kernel::plain ? plain_buffer_type() : buffer_type(kernel, matrix)].insert(
            matrix.name);
    }
    extra_ = !all_plain;
    if (all_plain) return;
    for (const auto& [type, of_type] : names)
        for (std::string& pattern : patterns(of_type)) place(std::move(pattern), type);
}

void Placement::place(std::string pattern, ggml_backend_buffer_type_t type) {
    places_.emplace_back(std::move(pattern), type);
}

void Placement::apply(llama_model_params& params) {
    params.use_extra_bufts = extra_;
    if (places_.empty()) return;
    overrides_.clear();
    for (const auto& [pattern, type] : places_) overrides_.push_back({pattern.c_str(), type});
    overrides_.push_back({nullptr, nullptr});
    params.tensor_buft_overrides = overrides_.data();
}

}  // namespace specllama
