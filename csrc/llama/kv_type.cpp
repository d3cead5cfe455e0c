#include "llama/kv_type.h"

#include <array>
#include <optional>

#include "specllama/error.h"

namespace specllama {

namespace {

constexpr std::array kTypes = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                               GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0,
                               GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL};

std::optional<ggml_type> find(const std::string& name) {
    for (const ggml_type type : kTypes)
        if (name == ggml_type_name(type)) return type;
    return {};
}

}  // namespace

std::string kv_type_name(const ContextOptions& options) { return options.kv_type.value_or("f16"); }

KvTypes kv_types(const std::string& name, const std::string& prefix) {
    const std::size_t slash = name.find('/');
    const auto keys = find(name.substr(0, slash));
    const auto values = slash == std::string::npos ? keys : find(name.substr(slash + 1));
    if (keys && values) return {*keys, *values};
    std::string all;
    for (const ggml_type type : kTypes)
        all += (all.empty() ? "" : ", ") + std::string(ggml_type_name(type));
    throw InvalidArgument(prefix + "kv_type must be one of " + all +
                          ", or two of them, of keys and of values, such as bf16/f16, not \"" +
                          name + "\".");
}

}  // namespace specllama
