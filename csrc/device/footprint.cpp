#include "device/footprint.h"

#include <algorithm>

#include "device/attention.h"
#include "llama/kv_type.h"
#include "runtime/context.h"

namespace specllama {

namespace {

double bytes_of_number(ggml_type type) {
    return static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
}

}  // namespace

Footprint footprint(const Header& header, const ContextPlan& context, int n_ctx, int n_logits) {
    // About half of what a layer keeps are keys, the rest are values.
    const KvTypes types = kv_types(kv_type_name(context));
    const double number = (bytes_of_number(types.keys) + bytes_of_number(types.values)) / 2;
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
    const double numbers =
        context.n_batch * (header.compute_numbers_per_token + n_seen) +
        2.0 * n_rows * header.n_vocab +
        (context.flash_attn == Switch::off ? attention_scores(header, context.n_batch, n_seen)
                                           : 0.0);
    // A header may claim any size. The bound leaves room for a sum of these.
    const auto bytes = [](double n) {
        return static_cast<std::uint64_t>(std::clamp(n, 0.0, 1e16));
    };
    Footprint need{.weights = header.weights.total, .compute = bytes(4 * numbers)};
    for (const Header::Layer& layer : header.layers) {
        const std::uint64_t kv =
            bytes((n_positions * layer.kv_numbers + n_in_windows * layer.window_numbers) * number);
        const std::uint64_t states =
            bytes(4 * layer.state_numbers * context.n_seq * (1 + n_snapshots));
        need.kv += kv;
        need.states += states;
        need.text.push_back(kv + states);
    }
    need.text.resize(header.weights.layers.size());
    return need;
}

}  // namespace specllama
