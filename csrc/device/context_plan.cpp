#include "device/context_plan.h"

#include <algorithm>
#include <string>

#include "device/rope.h"
#include "specllama/error.h"
#include "system/host.h"

namespace specllama {

namespace {

constexpr int kMaxContext = 1 << 30;  // tokens of all sequences together
constexpr int kMaxSequences = 64;
constexpr int kMaxBatch = 8192;
constexpr int kMaxThreads = 512;   // ggml's own limit
constexpr int kMaxSnapshots = 16;  // each takes as much memory as the recurrent state itself

void check_range(const char* name, int value, int low, int high, const char* zero) {
    if (value >= low && value <= high) return;
    throw InvalidArgument(std::string(name) + " must be from " + std::to_string(low) + " to " +
                          std::to_string(high) + zero + ", not " + std::to_string(value) + ".");
}

}  // namespace

void check(const ContextOptions& options) {
    check_range("n_seq", options.n_seq, 1, kMaxSequences, "");
    check_range("n_ctx", options.n_ctx, 0, kMaxContext / options.n_seq, " (0 is the default)");
    check_range("n_batch", options.n_batch, options.n_seq, kMaxBatch,
                options.n_seq == 1 ? "" : " (from n_seq on)");
    check_range("n_threads", options.n_threads, 0, kMaxThreads, " (0 is the default)");
    check(options.rope);
}

int resolve_threads(const ContextOptions& options) {
    return options.n_threads > 0 ? options.n_threads : performance_cores();
}

// never_alone takes 3 rows: a lone token, its companion, and one more so that llama.cpp allows the
// snapshot by which the companion is cut off again (see snapshots). For some architectures
// llama.cpp asserts that sequences which lie apart can share a micro-batch evenly.
int batch_size(const ContextPlan& plan) {
    const int n = std::max(plan.n_batch, plan.never_alone ? 3 : 1);
    const int n_parts = plan.per_sequence_streams ? plan.n_seq : 1;
    return (n + n_parts - 1) / n_parts * n_parts;
}

// As many as a draft has tokens. A micro-batch must have at least 2 rows more than snapshots.
int snapshots(const ContextPlan& plan, int n_logits) {
    const int n_wanted = std::max(n_logits - 1, plan.never_alone ? 1 : 0);
    return std::clamp(batch_size(plan) - 2, 0, std::min(n_wanted, kMaxSnapshots));
}

}  // namespace specllama
