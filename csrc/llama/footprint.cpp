#include "llama/footprint.h"

#include <algorithm>
#include <string>

#include "llama.h"
#include "llama/attention.h"
#include "llama/backend.h"
#include "llama/context.h"
#include "llama/kv_type.h"
#include "llama/offload.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr int kDefaultContext = 8192;
constexpr int kLeastContext = 512;

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + 1048575) >> 20) + " MiB"; }

struct Need {
    int n_seq;
    int n_ctx;
    Footprint target;
    Footprint draft;  // all 0 without a draft model
};

bool fits(std::uint64_t bytes, const Room& room) { return room.bytes == 0 || bytes <= room.bytes; }

// Where the two models go.
struct Rooms {
    Room target;
    Room draft;

    bool shared() const { return target.where == draft.where; }
    bool hold(const Need& need) const {
        return shared() ? fits(need.target.total() + need.draft.total(), target)
                        : fits(need.target.total(), target) && fits(need.draft.total(), draft);
    }
};

[[noreturn]] void throw_too_big(const Need& need, const Rooms& rooms) {
    if (!rooms.shared() && fits(need.target.total(), rooms.target))
        throw OutOfMemory("The draft model needs " + mib(need.draft.total()) + ", but " +
                          rooms.draft.where + " has " + mib(rooms.draft.bytes) +
                          " free; lower n_ctx, or give it another device.");
    const Room& room = rooms.target;
    std::string text = "The model needs " + mib(need.target.total()) + " (weights " +
                       mib(need.target.weights) + ", KV memory for " +
                       (need.n_seq > 1 ? std::to_string(need.n_seq) + " times " : "") +
                       std::to_string(need.n_ctx) + " tokens " + mib(need.target.kv) +
                       (need.target.states > 0 ? ", states " + mib(need.target.states) : "") +
                       ", computing " + mib(need.target.compute) + ")";
    if (rooms.shared() && need.draft.total() > 0)
        text += " and the draft model " + mib(need.draft.total());
    text += ", but " + room.where + " has " + mib(room.bytes) + " free; lower n_ctx" +
            (need.n_seq > 1 ? ", n_seq" : "") + " or n_batch" +
            (room.where == "main memory" ? "" : ", or n_gpu_layers") + ", or take a smaller model.";
    throw OutOfMemory(text);
}

}  // namespace

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
    return {header.weight_bytes, bytes(kept * number), bytes(4 * states), bytes(4 * numbers)};
}

void settle_memory(const Header& target, TargetPlan& plan, const Header* draft, int n_draft_logits,
                   SessionOptions& options) {
    if (draft != nullptr && draft->weight_bytes > target.weight_bytes)
        warn("The draft model " + options.draft_model->model.path + " (" +
             mib(draft->weight_bytes) + ") is larger than the model it drafts for (" +
             mib(target.weight_bytes) + "): it will hardly make it faster.");
    const Room of_target = room(plan.model);
    const Rooms free{of_target, draft != nullptr ? room(options.draft_model->model) : of_target};
    const bool is_given = plan.context.n_ctx > 0;
    const int wanted =
        is_given ? plan.context.n_ctx : std::min(target.n_ctx_train, kDefaultContext);
    int n_ctx = wanted;
    const auto need = [&] {
        Need all{
            plan.context.n_seq, n_ctx, footprint(target, plan.context, n_ctx, plan.n_logits), {}};
        if (draft != nullptr)
            all.draft = footprint(*draft, {options.draft_model->context}, n_ctx, n_draft_logits);
        return all;
    };
    while (!is_given && n_ctx > kLeastContext && !free.hold(need()))
        n_ctx = std::max(n_ctx / 2, kLeastContext);
    if (!free.hold(need())) throw_too_big(need(), free);
    if (n_ctx < wanted)
        warn("Not enough memory: n_ctx is lowered to " + std::to_string(n_ctx) + ".");
    plan.context.n_ctx = n_ctx;
    const auto settle_attention = [&](const Header& header, const ModelOptions& model,
                                      ContextOptions& context) {
        if (!faster_without_flash(header, model, context, n_ctx)) return;
        context.flash_attn = Switch::off;
        if (!free.hold(need())) context.flash_attn = Switch::automatic;
    };
    settle_attention(target, plan.model, plan.context);
    if (draft != nullptr)
        settle_attention(*draft, options.draft_model->model, options.draft_model->context);
}

void check_memory(const Model& model, const ContextPlan& context, int n_logits,
                  const std::string& who, const std::string& advice) {
    Footprint need = footprint(model.header(), context, context.n_ctx, n_logits);
    need.weights = 0;
    const Room free = room(model.options());
    if (fits(need.total(), free)) return;
    throw OutOfMemory(who + " needs " + mib(need.total()) + " of its own (KV memory for " +
                      std::to_string(context.n_ctx) + " tokens " + mib(need.kv) + ", computing " +
                      mib(need.compute) + "), but " + free.where + " has " + mib(free.bytes) +
                      " free; " + advice + ".");
}

}  // namespace specllama
