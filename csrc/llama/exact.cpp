#include "llama/exact.h"

#include <algorithm>
#include <string>

#include "ggml.h"
#include "llama/kernels.h"
#include "llama/kv_type.h"
#include "llama/offload.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// The first matrix whose kernel is not known to give the same bits at any two widths; null: none.
const Matrix* inexact_matrix(const Header& header, Kernels kernels) {
    for (const Matrix& matrix : header.matrices)
        if (same_bits(kernel_for(matrix, kernels), matrix.type).most == 1) return &matrix;
    return nullptr;
}

// Why a session with these options is not exact, as a part of a sentence; "": it is exact.
std::string inexact_because(const Header& header, const SessionOptions& options) {
#if !defined(__x86_64__)
    return "it has only been measured on x86-64 processors";
#endif
    if (!options.model.rpc.empty()) return "RPC servers take part (rpc)";
    if (!offload_devices(options.model).empty()) return "a GPU is used (n_gpu_layers is not 0)";
    const std::string kv = kv_type_name(options.context);
    if (kv != "q8_0") return "the KV memory is of type " + kv + ", not q8_0";
    // With a quantised KV memory, automatic means on.
    if (options.context.flash_attn == Switch::off) return "flash attention is off";
    if (header.head_size % 32 != 0)
        return "its attention heads have " + std::to_string(header.head_size) +
               " numbers, no multiple of 32";
    if (header.is_split) return "it is split over several files";
    if (const Matrix* matrix = inexact_matrix(header, Kernels::same_bits))
        return "its weight " + matrix->name + " is of type " + ggml_type_name(matrix->type) +
               ", of which too little is known";
    if (options.context.n_seq > 1 && !options.context.split)
        return "several requests share a memory (exact is not asked for)";
    if (header.slides && !options.context.whole_window)
        return "its sliding windows are kept short (exact is not asked for)";
    if (const Matrix* matrix = inexact_matrix(header, options.model.kernels))
        return "its weight " + matrix->name +
               " is stored for faster kernels (exact is not asked for)";
    const Widths widths = same_bits(header, options.model.kernels);
    if (widths.least > 1 && !options.context.never_alone)
        return "it has float weights, which give other bits to a token decoded alone (exact is not "
               "asked for)";
    if (options.context.n_seq > widths.most)
        return "its weights give other bits from " + std::to_string(widths.most + 1) +
               " tokens at once on, so n_seq may be " + std::to_string(widths.most) +
               " at most, not " + std::to_string(options.context.n_seq);
    if (options.context.n_batch > widths.most)
        return "more than " + std::to_string(widths.most) +
               " tokens at once get other bits (exact is not asked for)";
    return "";
}

bool costs_nothing(const Header& header, const SessionOptions& options,
                   const SessionOptions& exact) {
    return !exact.context.never_alone && exact.context.n_batch == options.context.n_batch &&
           !header.slides && options.context.n_seq == 1 &&
           std::ranges::all_of(header.matrices, [](const Matrix& matrix) {
               return kernel_for(matrix, Kernels::same_bits) ==
                      kernel_for(matrix, Kernels::fastest);
           });
}

SessionOptions as_exactness_wants(const Header& header, SessionOptions options) {
    if (options.exact == Switch::on && !options.model.n_gpu_layers && options.model.device.empty())
        options.model.n_gpu_layers = 0;
    // A Q8_0 memory costs too much to be chosen unasked: long prompts take up to twice as long.
    if (options.exact == Switch::on && !options.context.kv_type) options.context.kv_type = "q8_0";
    options.model.kernels = Kernels::same_bits;
    const Widths widths = same_bits(header, Kernels::same_bits);
    options.context.never_alone = widths.least > 1;
    options.context.n_batch =
        std::max(std::min(options.context.n_batch, widths.most), options.context.n_seq);
    options.context.split = true;
    options.context.whole_window = header.slides;
    return options;
}

}  // namespace

bool settle_exactness(const Header& header, SessionOptions& options) {
    const bool asked = options.exact == Switch::on;
    // If exactness is not demanded and a GPU takes part, the CPU's kernels need not be examined.
    const bool possible =
        options.exact == Switch::automatic && offload_devices(options.model).empty();
    if (asked || possible) {
        const SessionOptions exact = as_exactness_wants(header, options);
        const std::string reason = inexact_because(header, exact);
        if (asked && !reason.empty())
            throw InvalidArgument("exact cannot be had for " + options.model.path + ": " + reason +
                                  ".");
        if (reason.empty() && (asked || costs_nothing(header, options, exact))) {
            options = exact;
            return true;
        }
    }
    return inexact_because(header, options).empty();
}

}  // namespace specllama
