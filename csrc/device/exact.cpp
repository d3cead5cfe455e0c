#include "device/exact.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "device/attention.h"
#include "device/offload.h"
#include "ggml.h"
#include "llama/kv_type.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Types of the KV memory with which flash attention computes each row separately, the cheapest
// first. The last one has blocks of 32 numbers.
constexpr const char* kTwoTypes = "bf16/f16";
constexpr const char* kOneType = "bf16";
constexpr const char* kBlocks = "q8_0";
constexpr std::array<std::string_view, 3> kKvTypes = {kTwoTypes, kOneType, kBlocks};

// The first matrix whose kernel is not known to give the same bits at two widths; null: none.
const Matrix* inexact_matrix(const Header& header, Kernels kernels) {
    for (const Matrix& matrix : header.matrices)
        if (batch_invariant_widths(kernel_for(matrix, kernels), matrix.type).most == 1)
            return &matrix;
    return nullptr;
}

// Why nothing is known about the bits of decodes here, as a part of a sentence; "": the tables of
// kernels apply.
std::string unknown_because(const ModelOptions& model) {
#if !defined(__x86_64__)
    return "it has only been measured on x86-64 processors";
#endif
    if (!model.rpc.empty()) return "RPC servers are used (rpc)";
    if (!offload_devices(model).empty()) return "a GPU is used (n_gpu_layers is not 0)";
    if (!model.lora.empty()) return "LoRA adapters are used (lora)";
    return "";
}

// Whether a token's bits depend on other texts in the memory, or on earlier ones.
bool shares_memory(const ContextPlan& context) {
    return context.n_seq > 1 && !context.per_sequence_streams;
}
bool reuses_cells(const Header& header, const ContextPlan& context) {
    return header.has_sliding_window && !context.whole_window;
}

// Why a session with this plan is not exact, as a part of a sentence; "": it is exact.
std::string inexact_because(const Header& header, const TargetPlan& plan) {
    if (const std::string reason = unknown_because(plan.model); !reason.empty()) return reason;
    const std::string kv = kv_type_name(plan.context);
    if (std::ranges::find(kKvTypes, kv) == kKvTypes.end())
        return "the KV memory is of type " + kv + ", not bf16/f16, bf16 or q8_0";
    // With these types, automatic means on.
    if (plan.context.flash_attn == Switch::off) return "flash attention is off";
    if (kv == kBlocks && header.head_size % 32 != 0)
        return "its attention heads have " + std::to_string(header.head_size) +
               " numbers, which is not a multiple of 32";
    if (const Matrix* matrix = inexact_matrix(header, Kernels::batch_invariant))
        return "its weight " + matrix->name + " is of type " + ggml_type_name(matrix->type) +
               ", which has no kernel that is known to be exact";
    if (shares_memory(plan.context)) return "several requests share a memory (exact is not on)";
    if (reuses_cells(header, plan.context))
        return "its sliding windows do not keep the whole text (exact is not on)";
    if (const Matrix* matrix = inexact_matrix(header, plan.kernels))
        return "its weight " + matrix->name + " is stored for faster kernels (exact is not on)";
    const Widths widths = batch_invariant_widths(header, plan.kernels);
    if (widths.least > 1 && !plan.context.never_alone)
        return "it has float weights, which give a token decoded alone other bits (exact is not "
               "on)";
    if (plan.context.n_seq > widths.most)
        return "its weights give other bits to more than " + std::to_string(widths.most) +
               " tokens at once, so n_seq can be at most " + std::to_string(widths.most) +
               ", not " + std::to_string(plan.context.n_seq);
    if (plan.context.n_batch > widths.most)
        return "its weights give other bits to more than " + std::to_string(widths.most) +
               " tokens at once (exact is not on)";
    return "";
}

// The fraction of the weights (by bytes) for which the fastest kernels are not the ones that give
// the same bits at any width.
double slower_part(const Header& header) {
    double slower = 0;
    double all = 0;
    for (const Matrix& matrix : header.matrices) {
        const auto size = static_cast<double>(matrix.n_bytes());
        all += size;
        if (kernel_for(matrix, Kernels::batch_invariant) != kernel_for(matrix, Kernels::fastest))
            slower += size;
    }
    return all > 0 ? slower / all : 0;
}

bool costs_nothing(const Header& header, const TargetPlan& given, const TargetPlan& exact) {
    return !exact.context.never_alone && exact.context.n_batch == given.context.n_batch &&
           !header.has_sliding_window && given.context.n_seq == 1 && slower_part(header) == 0;
}

// Q4_K matrices that are not repacked cost up to 1.45 times as much in a decode of one token. If
// they are at most this fraction of the weights, that decode takes at most a tenth longer, and a
// token gets the same bits at more widths.
constexpr double kCheapPart = 0.2;

// asked: whether options.exact is on.
TargetPlan as_exactness_wants(const Header& header, TargetPlan plan, bool asked) {
    if (asked && !plan.model.n_gpu_layers && plan.model.device.empty()) plan.model.n_gpu_layers = 0;
    // Such a memory is too slow to be the default: long prompts take up to twice as long.
    if (asked && !plan.context.kv_type)
        plan.context.kv_type = header.one_kv_type ? kOneType : kTwoTypes;
    plan.kernels = Kernels::batch_invariant;
    const Widths widths = batch_invariant_widths(header, Kernels::batch_invariant);
    plan.context.never_alone = widths.least > 1;
    plan.context.n_batch =
        std::max(std::min(plan.context.n_batch, widths.most), plan.context.n_seq);
    plan.context.per_sequence_streams = true;
    plan.context.whole_window = header.has_sliding_window;
    return plan;
}

}  // namespace

TargetPlan resolve_exactness(const Header& header, const SessionOptions& options) {
    TargetPlan given{.model = options.model, .context = {options.context}};
    const bool asked = options.exact == Switch::on;
    // If exactness is not demanded and a GPU is used, the CPU's kernels need not be tested.
    const bool possible =
        options.exact == Switch::automatic && offload_devices(options.model).empty();
    if (asked || possible) {
        TargetPlan exact = as_exactness_wants(header, given, asked);
        const std::string reason = inexact_because(header, exact);
        if (asked && !reason.empty())
            throw InvalidArgument("Exact decoding is not possible for " + options.model.path +
                                  ": " + reason + ".");
        if (reason.empty() && (asked || costs_nothing(header, given, exact))) {
            exact.exact = true;
            return exact;
        }
    }
    if (offload_devices(options.model).empty() && slower_part(header) <= kCheapPart)
        given.kernels = Kernels::batch_invariant;
    given.exact = inexact_because(header, given).empty();
    return given;
}

Widths same_widths(const Header& header, const TargetPlan& plan) {
    if (!unknown_because(plan.model).empty() || shares_memory(plan.context) ||
        reuses_cells(header, plan.context))
        return {};
    const Widths weights = batch_invariant_widths(header, plan.kernels);
    const Widths attention = attention_widths(plan.context, plan.context.n_ctx);
    const Widths both{std::max(weights.least, attention.least),
                      std::min({weights.most, attention.most, plan.context.n_batch})};
    return both.least < both.most ? both : Widths{};
}

}  // namespace specllama
