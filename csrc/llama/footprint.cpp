#include "llama/footprint.h"

#include <algorithm>

#include "llama/attention.h"
#include "llama/context.h"
#include "llama/kv_type.h"

namespace specllama {

Footprint footprint(const Header& header, const ContextPlan& context, int n_ctx, int n_logits) {
    const ggml_type type = kv_type(kv_type_name(context));
    const double number =
        static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
    // Computing takes numbers of 32 bits: for each token of a batch what a layer works on, a row of
    // the attention mask and, without flash attention, rows of scores; and for some tokens logits,
    // which are counted twice.
    const double n_positions = static_cast<double>(context.n_seq) * n_ctx;
    const double n_in_windows =
        context.whole_window ? n_positions
                             : context.n_seq * std::min(static_cast<double>(n_ctx),
                                                        header.n_window + 1.0 * context.n_batch);
    int n_rows = std::min(context.n_seq * n_logits, context.n_batch);
    if (context.n_forks > 0) n_rows = std::max(n_rows, context.n_seq + context.n_forks);
    const double n_seen = context.split ? n_ctx : n_positions;
    const int n_snapshots = header.has_snapshots ? snapshots(context, n_logits) : 0;
    const double states = header.state_numbers * context.n_seq * (1 + n_snapshots);
    const double numbers =
        context.n_batch * (header.compute_numbers_per_token + n_seen) +
        2.0 * n_rows * header.n_vocab +
        (context.flash_attn == Switch::off ? attention_scores(header, context.n_batch, n_seen)
                                           : 0.0);
    // A header may claim any size. The bound leaves room for a sum of these.
    const auto bytes = [](double n) {
        return static_cast<std::uint64_t>(std::clamp(n, 0.0, 1e18));
    };
    const double kept =
        n_positions * header.kv_numbers_per_token + n_in_windows * header.window_numbers_per_token;
    return {header.weights.total, bytes(kept * number), bytes(4 * states), bytes(4 * numbers)};
}

}  // namespace specllama
