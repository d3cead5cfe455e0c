#include "llama/exact.h"

#include <string>

#include "llama/offload.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Why a session with these options would not be exact, as a part of a sentence; "" when it will.
std::string inexact_because(const Header& header, const SessionOptions& options) {
#if !defined(__x86_64__)
    return "it has only been measured on x86-64 processors";
#endif
    if (!offload_devices(options.model).empty()) return "a GPU is used (n_gpu_layers is not 0)";
    const std::string kv_type = options.context.kv_type.value_or("f16");
    if (kv_type != "q8_0") return "the KV memory is of type " + kv_type + ", not q8_0";
    // With a quantised KV memory, "auto" is on.
    if (options.context.flash_attn == Switch::off) return "flash attention is off";
    if (header.head_size % 32 != 0)
        return "its attention heads have " + std::to_string(header.head_size) +
               " numbers, no multiple of 32";
    if (!header.inexact.empty())
        return "its weight " + header.inexact +
               " is of none of the types Q8_0, Q4_0, F32, F16 "
               "and BF16";
    if (options.context.n_seq > 1 && !options.context.split)
        return "several requests share a memory (exact is not asked for)";
    if (header.slides && !options.context.whole_window)
        return "its sliding windows are kept short (exact is not asked for)";
    if (options.model.repack && header.repackable)
        return "weights may be repacked (exact is not asked for)";
    if (!header.inexact_alone.empty() && !options.context.never_alone)
        return "its weight " + header.inexact_alone +
               " gives other bits to a token decoded alone (exact is not asked for)";
    return "";
}

SessionOptions as_exactness_wants(const Header& header, SessionOptions options) {
    if (options.exact == Switch::on && !options.model.n_gpu_layers && options.model.device.empty())
        options.model.n_gpu_layers = 0;
    if (!options.context.kv_type) options.context.kv_type = "q8_0";
    options.model.repack = false;
    options.context.never_alone = !header.inexact_alone.empty();
    options.context.split = true;
    options.context.whole_window = header.slides;
    return options;
}

}  // namespace

bool settle_exactness(const Header& header, SessionOptions& options) {
    if (options.exact != Switch::off) {
        const SessionOptions exact = as_exactness_wants(header, options);
        const std::string reason = inexact_because(header, exact);
        if (options.exact == Switch::on && !reason.empty())
            throw InvalidArgument("exact cannot be had for " + options.model.path + ": " + reason +
                                  ".");
        const bool costs_little = !header.repackable && header.inexact_alone.empty() &&
                                  !header.slides && options.context.n_seq == 1;
        if (reason.empty() && (options.exact == Switch::on || costs_little)) {
            options = exact;
            return true;
        }
    }
    return inexact_because(header, options).empty();
}

}  // namespace specllama
