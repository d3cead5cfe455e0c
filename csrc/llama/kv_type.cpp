#include "llama/kv_type.h"

#include <array>

#include "specllama/error.h"

namespace specllama {

std::string kv_type_name(const ContextOptions& options) { return options.kv_type.value_or("f16"); }

ggml_type kv_type(const std::string& name, const std::string& prefix) {
    constexpr std::array kTypes = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                   GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0,
                                   GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL};
    std::string all;
    for (const ggml_type type : kTypes) {
        if (name == ggml_type_name(type)) return type;
        all += (all.empty() ? "" : ", ") + std::string(ggml_type_name(type));
    }
    throw InvalidArgument(prefix + "kv_type must be one of " + all + ", not \"" + name + "\".");
}

}  // namespace specllama
