#include "device/fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "device/attention.h"
#include "device/offload.h"
#include "llama/backend.h"
#include "llama/kv_type.h"
#include "specllama/error.h"
#include "system/host.h"
#include "system/layer_split.h"

namespace specllama {

namespace {

constexpr int kDefaultContext = 8192;
constexpr int kLeastContext = 512;
// With a context of this length, all layers on a device are better than a longer context.
constexpr int kLeastOnDevices = 4096;

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + 1048575) >> 20) + " MiB"; }

// Bytes that a model needs, by its header: exact for the weights; by Header::layers for what layers
// keep of texts (a lower bound for recurrent states); an estimate for computing.
struct Footprint {
    std::uint64_t weights = 0;
    std::uint64_t kv = 0;
    std::uint64_t states = 0;
    std::uint64_t compute = 0;
    std::uint64_t projector = 0;
    std::vector<std::uint64_t> text;  // [layer of Weights]: its kv and states

    std::uint64_t total() const { return weights + kv + states + compute + projector; }
};

double bytes_of_number(ggml_type type) {
    return static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
}

// n_ctx: tokens of each sequence. n_logits: most rows of logits of each sequence in a decode.
Footprint footprint(const Header& header, const ContextPlan& context, int n_ctx, int n_logits) {
    // About half of what a layer keeps are keys; the rest are values.
    const KvTypes types = kv_types(kv_type_name(context));
    const double number = (bytes_of_number(types.keys) + bytes_of_number(types.values)) / 2;
    // Computing needs 32-bit numbers: for each token of a batch, a layer's activations, a row of
    // the attention mask and, without flash attention, rows of scores; and for some tokens logits,
    // which are counted twice.
    const double n_positions = static_cast<double>(context.n_seq) * n_ctx;
    const double n_in_windows =
        context.whole_window ? n_positions
                             : context.n_seq * std::min(static_cast<double>(n_ctx),
                                                        header.n_window + 1.0 * context.n_batch);
    int n_rows = std::min(context.n_seq * n_logits, context.n_batch);
    if (context.n_forks > 0) n_rows = std::max(n_rows, context.n_seq + context.n_forks);
    const double n_seen = context.per_sequence_streams ? n_ctx : n_positions;
    const int n_snapshots = header.traits.snapshots ? snapshots(context, n_logits) : 0;
    const double numbers =
        context.n_batch * (header.compute_numbers_per_token + n_seen) +
        2.0 * n_rows * header.n_vocab +
        (context.flash_attn == Switch::off ? attention_scores(header, context.n_batch, n_seen)
                                           : 0.0);
    // A header may state any size. The bound prevents an overflow of the sums.
    const auto bytes = [](double n) {
        return static_cast<std::uint64_t>(std::clamp(n, 0.0, 1e16));
    };
    Footprint need;
    need.weights = header.weights.total;
    need.compute = bytes(4 * numbers);
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

// Memory that the models of a session need with a context of n_ctx tokens.
struct Need {
    int n_seq;
    int n_ctx;
    Footprint target;
    Footprint draft;  // all 0 without a draft model
};

bool fits(std::uint64_t bytes, std::uint64_t room) { return room == 0 || bytes <= room; }

// Memory for the two models.
struct Budgets {
    const Weights& weights;        // of the target
    std::optional<int> n_cpu_moe;  // see ModelOptions
    MemoryBudget target;
    MemoryBudget draft;
    bool draft_follows;  // whether the draft model is a head, which is placed with the target

    bool shared() const { return target.where == draft.where; }
    // Whether the target can be divided between devices and main memory.
    bool divisible() const { return !target.devices.empty() && target.bytes > 0; }
    bool draft_fits(const Need& need) const {
        return draft_follows || fits(need.draft.total(), draft.bytes);
    }

    // Whether all fit without dividing the target.
    bool all_fit(const Need& need) const {
        if (divisible()) return draft_fits(need) && whole(need, true).has_value();
        const std::uint64_t beside = shared() ? need.draft.total() : 0;
        return draft_fits(need) && fits(need.target.total() + beside, target.bytes);
    }

    // The target undivided on its devices; none: it does not fit. reserve: whether a part of them
    // stays free.
    std::optional<LayerSplit> whole(const Need& need, bool reserve) const {
        return specllama::whole(model_bytes(need), n_cpu_moe.value_or(0), devices(need, reserve));
    }

    // The target divided between its devices and main memory; none: it or the draft model does not
    // fit.
    std::optional<LayerSplit> divided(const Need& need) const {
        LayerSplit layer_split = divide(model_bytes(need), n_cpu_moe, devices(need, true));
        const bool draft_is_here =
            draft.devices.empty() || (draft_follows && layer_split.n_gpu_layers == 0);
        const std::uint64_t here = in_main_memory(model_bytes(need), layer_split) +
                                   (draft_is_here ? need.draft.total() : 0);
        if (!fits(here, memory_available()) || !(draft_is_here || draft_fits(need))) return {};
        return layer_split;
    }

 private:
    ModelBytes model_bytes(const Need& need) const {
        return {weights, need.target.text, need.target.compute + need.target.projector};
    }

    // The target's devices, minus the draft model's memory. With several devices it may be on any
    // of them, so it is subtracted from each.
    std::vector<DeviceMemory> devices(const Need& need, bool reserve) const {
        std::vector<DeviceMemory> devices = target.devices;
        for (std::size_t i = 0; i < devices.size(); ++i) {
            std::uint64_t& usable = devices[i].usable;
            if (!reserve) usable = devices[i].free;
            const bool beside =
                std::ranges::find(draft.names, target.names[i]) != draft.names.end();
            if (beside) usable -= std::min(usable, need.draft.total());
        }
        return devices;
    }
};

[[noreturn]] void throw_too_big(const Need& need, const Budgets& budgets) {
    if (!budgets.draft_fits(need) &&
        (budgets.divisible() || budgets.target.bytes == 0 ||
         (!budgets.shared() && fits(need.target.total(), budgets.target.bytes))))
        throw OutOfMemory("The draft model needs " + mib(need.draft.total()) + ", but " +
                          budgets.draft.where + " has " + mib(budgets.draft.bytes) +
                          " free; lower n_ctx, or give it another device.");
    const MemoryBudget& budget = budgets.target;
    std::string text =
        "The model needs " + mib(need.target.total()) + " (weights " + mib(need.target.weights) +
        ", KV memory for " + (need.n_seq > 1 ? std::to_string(need.n_seq) + " times " : "") +
        std::to_string(need.n_ctx) + " tokens " + mib(need.target.kv) +
        (need.target.states > 0 ? ", states " + mib(need.target.states) : "") + ", computing " +
        mib(need.target.compute) +
        (need.target.projector > 0 ? ", projector " + mib(need.target.projector) : "") + ")";
    if (budgets.shared() && need.draft.total() > 0)
        text += " and the draft model " + mib(need.draft.total());
    text += ", but " + budget.where + " has " + mib(budget.bytes) +
            (budgets.divisible() ? " and main memory " + mib(memory_available()) : "") +
            " free; lower n_ctx" + (need.n_seq > 1 ? ", n_seq" : "") +
            " or n_batch, or use a smaller model.";
    throw OutOfMemory(text);
}

// The first of `wanted`, `wanted` / 2, and so on down to `least`, that fits; none: not even
// `least`.
template <typename Fits>
std::optional<int> longest(int wanted, int least, Fits fits) {
    for (int n = wanted;; n = std::max(n / 2, least)) {
        if (fits(n)) return n;
        if (n <= least) return {};
    }
}

// Tokens of context: wanted; least accepted; and least accepted before the target is divided.
struct Contexts {
    int wanted;
    int least;
    int undivided;

    // given: by the options; 0: as trained, or fewer; -1: as trained, at most the default, or
    // fewer.
    Contexts(int given, int trained)
        : wanted(given > 0    ? given
                 : given == 0 ? trained
                              : std::min(trained, kDefaultContext)),
          least(given > 0 ? wanted : std::min(wanted, kLeastContext)),
          undivided(given > 0 ? wanted : std::min(wanted, kLeastOnDevices)) {}
};

struct Fit {
    int n_ctx = 0;
    std::optional<LayerSplit> layer_split;  // none: no devices, or the split is not open
};

// The longest context that fits. need(n_ctx): memory that the models need with it.
template <typename Needs>
Fit fitted(const Budgets& budgets, const Contexts& contexts, Needs need) {
    const auto all_fit = [&](int n) { return budgets.all_fit(need(n)); };
    if (!budgets.divisible()) {
        if (const auto n = longest(contexts.wanted, contexts.least, all_fit))
            return {*n, std::nullopt};
        throw_too_big(need(contexts.least), budgets);
    }
    if (const auto n = longest(contexts.wanted, contexts.undivided, all_fit))
        return {*n, budgets.whole(need(*n), true)};
    std::optional<LayerSplit> layer_split;
    const auto divide = [&](int n) { return (layer_split = budgets.divided(need(n))).has_value(); };
    if (const auto n = longest(contexts.undivided, contexts.least, divide))
        return {*n, layer_split};
    // Main memory cannot hold a part, so nothing on the devices is reserved.
    const auto squeeze = [&](int n) {
        layer_split = budgets.whole(need(n), false);
        return layer_split && budgets.draft_fits(need(n));
    };
    if (const auto n = longest(contexts.wanted, contexts.least, squeeze)) return {*n, layer_split};
    throw_too_big(need(contexts.least), budgets);
}

// The part of the target that stays in main memory, as the subject of a sentence with its verb; "":
// nothing that was not requested.
std::string what_stays(const Budgets& budgets, const LayerSplit& layer_split) {
    const std::vector<Weights::Layer>& layers = budgets.weights.layers;
    const auto n_layers = static_cast<int>(layers.size());
    const auto first = [&](int n) {
        return (n == 1 ? "the first" : "the first " + std::to_string(n)) + " of its " +
               std::to_string(n_layers) + " layers";
    };
    if (layer_split.n_gpu_layers == 0) return "all of it stays";
    const int n_here = std::max(n_layers + 1 - layer_split.n_gpu_layers, 0);
    const int n_experts = std::min(layer_split.n_cpu_moe, n_layers);
    const bool has_experts =
        std::any_of(layers.begin() + n_here, layers.begin() + std::max(n_here, n_experts),
                    [](const Weights::Layer& layer) { return layer.of_experts > 0; });
    if (n_here > 0 && has_experts) return first(n_here) + " and the experts of others stay";
    if (n_here > 0) return first(n_here) + (n_here == 1 ? " stays" : " stay");
    if (!has_experts || budgets.n_cpu_moe) return "";
    return "the experts of " + first(n_experts) + " stay";
}

// Sets the devices of the target's layers. Prints a notice of what stays in main memory.
void apply_split(const Budgets& budgets, const LayerSplit& layer_split, ModelOptions& model) {
    const std::string what = what_stays(budgets, layer_split);
    if (layer_split.n_gpu_layers == 0) {
        model.device = "none";
        model.rpc.clear();
        model.n_gpu_layers = 0;
    } else if (layer_split.n_gpu_layers <= std::ssize(budgets.weights.layers)) {
        model.n_gpu_layers = layer_split.n_gpu_layers;
    }
    model.n_cpu_moe = layer_split.n_cpu_moe;
    model.tensor_split.assign(layer_split.split.begin(), layer_split.split.end());
    if (what.empty()) return;
    warn("Not all of the model fits into the " + mib(budgets.target.bytes) + " that " +
         budgets.target.where + (budgets.target.devices.size() > 1 ? " have" : " has") +
         " free: " + what + " in main memory.");
}

// The header of a file's layers of multi-token prediction. Each keeps as much of texts as the
// largest other layer of their model.
Header of_prediction(const Header& file) {
    Header header = file;
    header.matrices.clear();
    Header::Layer most;
    for (const Header::Layer& layer : file.layers)
        most.kv_numbers = std::max({most.kv_numbers, layer.kv_numbers, layer.window_numbers});
    header.layers.assign(file.weights.layers.size() - file.layers.size(), most);
    return header;
}

}  // namespace

void resolve_memory(const Header& target, TargetPlan& plan, const Header* draft, int n_draft_logits,
                    DraftPlan* draft_plan) {
    if (draft != nullptr && draft->weights.total > target.weights.total)
        warn("The draft model " + draft_plan->model.path + " (" + mib(draft->weights.total) +
             ") is larger than the model it drafts for (" + mib(target.weights.total) +
             "): it will hardly speed it up.");
    const bool predicts = draft_plan != nullptr && draft_plan->mtp;
    Header prediction;
    if (predicts) {
        prediction = of_prediction(target);
        prediction.weights = {};  // the target's weights include theirs
        draft = &prediction;
    } else if (draft != nullptr && draft->is_prediction) {
        prediction = of_prediction(*draft);
        draft = &prediction;
    }
    // Layers of multi-token prediction are loaded only if they draft.
    Weights weights = target.weights;
    for (std::size_t layer = target.layers.size(); !predicts && layer < weights.layers.size();)
        weights.layers[layer++] = {};
    const bool follows = predicts || (draft != nullptr && draft->is_head());
    const MemoryBudget of_target = memory_budget(plan.model);
    const Budgets free{
        weights, plan.model.n_cpu_moe, of_target,
        draft_plan == nullptr || follows ? of_target : memory_budget(draft_plan->model), follows};
    const auto need = [&](int n_ctx) {
        Need all{
            plan.context.n_seq, n_ctx, footprint(target, plan.context, n_ctx, plan.n_logits), {}};
        all.target.projector = plan.projector_bytes;
        if (draft != nullptr)
            all.draft = footprint(*draft, {draft_plan->context}, n_ctx, n_draft_logits);
        return all;
    };
    const Contexts contexts(plan.context.n_ctx, target.n_ctx_train);
    const Fit fit = fitted(free, contexts, need);
    if (fit.n_ctx < contexts.wanted)
        warn("Not enough memory: n_ctx is lowered to " + std::to_string(fit.n_ctx) + ".");
    plan.context.n_ctx = fit.n_ctx;
    if (fit.n_ctx > target.n_ctx_train && !plan.context.rope.scaling && !plan.context.rope.scale)
        warn("n_ctx is " + std::to_string(fit.n_ctx) + ", but the model was trained with " +
             std::to_string(target.n_ctx_train) +
             " tokens; longer texts may be worse (see rope_scaling).");
    if (fit.layer_split) apply_split(free, *fit.layer_split, plan.model);
    const auto settle_attention = [&](const Header& header, const ModelOptions& model,
                                      ContextOptions& context) {
        if (!too_slow_with_flash(header, model, context, plan.context.n_ctx)) return;
        context.flash_attn = Switch::off;
        const Need with_scores = need(plan.context.n_ctx);
        const bool holds = fit.layer_split ? free.divided(with_scores) == fit.layer_split
                                           : free.all_fit(with_scores);
        if (!holds) context.flash_attn = Switch::automatic;
    };
    settle_attention(target, plan.model, plan.context);
    if (draft != nullptr && !follows)
        settle_attention(*draft, draft_plan->model, draft_plan->context);
}

void check_memory(const Header& header, const ModelOptions& model, const ContextPlan& context,
                  int n_logits, const std::string& who, const std::string& advice) {
    Footprint need = footprint(header, context, context.n_ctx, n_logits);
    need.weights = 0;
    const MemoryBudget free = memory_budget(model);
    if (fits(need.total(), free.bytes)) return;
    throw OutOfMemory(who + " needs " + mib(need.total()) + " of its own (KV memory for " +
                      std::to_string(context.n_ctx) + " tokens " + mib(need.kv) + ", computing " +
                      mib(need.compute) + "), but " + free.where + " has " + mib(free.bytes) +
                      " free; " + advice + ".");
}

}  // namespace specllama
