#include "device/rope.h"

#include <array>
#include <sstream>
#include <string_view>
#include <utility>

#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::array<std::pair<std::string_view, llama_rope_scaling_type>, 3> kScalings = {{
    {"none", LLAMA_ROPE_SCALING_TYPE_NONE},
    {"linear", LLAMA_ROPE_SCALING_TYPE_LINEAR},
    {"yarn", LLAMA_ROPE_SCALING_TYPE_YARN},
}};

llama_rope_scaling_type scaling_type(const std::string& scaling) {
    for (const auto& [name, type] : kScalings)
        if (name == scaling) return type;
    throw InvalidArgument("rope_scaling must be \"none\", \"linear\" or \"yarn\", not \"" +
                          scaling + "\".");
}

// llama.cpp counts in float.
void check_range(const char* name, const std::optional<double>& value, double least, double most) {
    if (!value || (*value >= least && *value <= most)) return;
    std::ostringstream message;
    message << name << " must be from " << least << " to " << most << ", not " << *value << '.';
    throw InvalidArgument(message.str());
}

}  // namespace

void check(const RopeOptions& options) {
    if (options.scaling) scaling_type(*options.scaling);
    check_range("rope_scale", options.scale, 0.001, 1000);
    check_range("rope_freq_base", options.freq_base, 1, 1e12);
    if (options.yarn_orig_ctx && *options.yarn_orig_ctx < 1)
        throw InvalidArgument("yarn_orig_ctx must be 1 or more, not " +
                              std::to_string(*options.yarn_orig_ctx) + ".");
}

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
