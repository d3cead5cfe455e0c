#include "device/rope.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace specllama {

namespace {

constexpr std::array<std::pair<std::string_view, llama_rope_scaling_type>, 3> kScalings = {{
    {"none", LLAMA_ROPE_SCALING_TYPE_NONE},
    {"linear", LLAMA_ROPE_SCALING_TYPE_LINEAR},
    {"yarn", LLAMA_ROPE_SCALING_TYPE_YARN},
}};

llama_rope_scaling_type scaling_type(std::string_view scaling) {
    const auto* const found =
        std::ranges::find(kScalings, scaling, [](const auto& one) { return one.first; });
    return found->second;
}

}  // namespace

void apply(const RopeOptions& options, llama_context_params& params) {
    if (options.scaling) params.rope_scaling_type = scaling_type(*options.scaling);
    if (options.scale) params.rope_freq_scale = static_cast<float>(1 / *options.scale);
    if (options.freq_base) params.rope_freq_base = static_cast<float>(*options.freq_base);
    if (options.yarn_orig_ctx) params.yarn_orig_ctx = *options.yarn_orig_ctx;
}

std::string in_words(const RopeOptions& options) {
    std::string words;
    if (options.scaling) words += ", scaling " + *options.scaling;
    if (options.scale) words += ", scale " + std::to_string(*options.scale);
    if (options.freq_base) words += ", base " + std::to_string(*options.freq_base);
    if (options.yarn_orig_ctx)
        words += ", trained with " + std::to_string(*options.yarn_orig_ctx) + " tokens";
    return words;
}

}  // namespace specllama
