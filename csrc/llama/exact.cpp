#include "llama/exact.h"

namespace specllama {

std::string inexact_because(const Model& model, const ContextOptions& options) {
#if !defined(__x86_64__)
    return "it has only been measured on x86-64 processors";
#endif
    if (model.on_device()) return "a GPU is used (n_gpu_layers is not 0)";
    if (options.kv_type != "q8_0")
        return "the KV memory is of type " + options.kv_type + ", not q8_0";
    // With a quantised KV memory, "auto" is on.
    if (options.flash_attn == FlashAttention::off) return "flash attention is off";
    if (!model.inexact_weight().empty())
        return "its weight " + model.inexact_weight() + " is of neither type Q8_0 nor Q4_0";
    if (model.repacks()) return "weights may be repacked (exact is not asked for)";
    return "";
}

}  // namespace specllama
