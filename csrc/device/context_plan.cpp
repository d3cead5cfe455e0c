#include "device/context_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "llama.h"
#include "specllama/error.h"
#include "system/host.h"

namespace specllama {

namespace {

constexpr int kMaxContext = 1 << 30;  // tokens of all sequences together
constexpr int kMaxSnapshots = 16;     // each takes as much memory as the recurrent state itself

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

std::size_t in_bytes(int mebibytes) {
    return mebibytes < 0 ? std::numeric_limits<std::size_t>::max()
                         : static_cast<std::size_t>(mebibytes) << 20;
}

void check(const ContextOptions& options) {
    check_options(options);
    if (options.n_ctx > kMaxContext / options.n_seq)
        throw InvalidArgument("n_ctx times n_seq must be at most " + std::to_string(kMaxContext) +
                              ", not " + std::to_string(options.n_ctx) + " times " +
                              std::to_string(options.n_seq) + ".");
    if (options.n_batch < options.n_seq)
        throw InvalidArgument("n_batch must be at least n_seq, which is " +
                              std::to_string(options.n_seq) + ", not " +
                              std::to_string(options.n_batch) + ".");
}

int resolve_threads(const ContextOptions& options) {
    return options.n_threads > 0 ? options.n_threads : performance_cores();
}

// never_alone needs 3 rows: a token, its companion, and one more so that llama.cpp allows the
// snapshot that removes the companion again (see snapshots). For some architectures llama.cpp
// asserts that a micro-batch can be divided evenly among sequences with separate memories.
int batch_size(const ContextPlan& plan) {
    const int n = std::max(plan.n_batch, plan.never_alone ? 3 : 1);
    const int n_parts = plan.per_sequence_streams ? plan.n_seq : 1;
    return (n + n_parts - 1) / n_parts * n_parts;
}

// One for each token of a draft. A micro-batch must have at least 2 rows more than there are
// snapshots.
int snapshots(const ContextPlan& plan, int n_logits) {
    const int n_wanted = std::max(n_logits - 1, plan.never_alone ? 1 : 0);
    return std::clamp(batch_size(plan) - 2, 0, std::min(n_wanted, kMaxSnapshots));
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
