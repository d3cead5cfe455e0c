#include "llama/fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "llama/attention.h"
#include "llama/backend.h"
#include "llama/footprint.h"
#include "llama/head_file.h"
#include "llama/offload.h"
#include "specllama/error.h"
#include "system/division.h"
#include "system/host.h"

namespace specllama {

namespace {

constexpr int kDefaultContext = 8192;
constexpr int kLeastContext = 512;
// With a context of so many tokens it is better to have all layers on a device than a longer one.
constexpr int kLeastOnDevices = 4096;

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + 1048575) >> 20) + " MiB"; }

// The first of `wanted`, half of it, and so on down to `least`, that fits; none: not even `least`.
template <typename Fits>
std::optional<int> longest(int wanted, int least, Fits fits) {
    for (int n = wanted;; n = std::max(n / 2, least)) {
        if (fits(n)) return n;
        if (n <= least) return {};
    }
}

// What the models of a session take with some context.
struct Need {
    int n_seq;
    int n_ctx;
    Footprint target;
    Footprint draft;  // all 0 without a draft model
};

bool fits(std::uint64_t bytes, std::uint64_t room) { return room == 0 || bytes <= room; }

// Where the two models go.
struct Rooms {
    const Weights& weights;        // of the target
    std::optional<int> n_cpu_moe;  // see ModelOptions
    Room target;
    Room draft;

    bool draft_follows;  // whether the draft model is a head, which lies where the target does

    bool shared() const { return target.where == draft.where; }
    // Whether the target goes to devices that may hold only a part of it.
    bool divisible() const { return !target.devices.empty() && target.bytes > 0; }

    bool hold_draft(const Need& need) const { return fits(need.draft.total(), draft.bytes); }

    bool hold(const Need& need) const {
        if (divisible())
            return hold_draft(need) &&
                   specllama::fits(load(need), undivided(weights, n_cpu_moe.value_or(0)),
                                   devices(need));
        const std::uint64_t beside = shared() ? need.draft.total() : 0;
        return hold_draft(need) && fits(need.target.total() + beside, target.bytes);
    }

    // The target divided between its devices and main memory; none: they do not hold it, or the
    // draft model has no room.
    std::optional<Division> divided(const Need& need) const {
        const Division division = divide(load(need), devices(need), n_cpu_moe);
        const bool draft_is_here =
            draft.devices.empty() || (draft_follows && division.n_gpu_layers == 0);
        const std::uint64_t here =
            in_main_memory(load(need), division) + (draft_is_here ? need.draft.total() : 0);
        if (!fits(here, memory_available()) || !(draft_is_here || hold_draft(need))) return {};
        return division;
    }

 private:
    Load load(const Need& need) const {
        return {weights, need.target.kv + need.target.states, need.target.compute};
    }

    // The target's devices, less what the draft model takes of them.
    std::vector<DeviceMemory> devices(const Need& need) const {
        std::vector<DeviceMemory> devices = target.devices;
        const double part =
            shared() ? static_cast<double>(need.draft.total()) / static_cast<double>(target.bytes)
                     : 0;
        for (DeviceMemory& device : devices) {
            const double taken = part * static_cast<double>(device.free);
            device.usable -= std::min(device.usable, static_cast<std::uint64_t>(taken));
        }
        return devices;
    }
};

[[noreturn]] void throw_too_big(const Need& need, const Rooms& rooms) {
    if (!rooms.hold_draft(need) &&
        (rooms.divisible() || (!rooms.shared() && fits(need.target.total(), rooms.target.bytes))))
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
    text += ", but " + room.where + " has " + mib(room.bytes) +
            (rooms.divisible() ? " and main memory " + mib(memory_available()) : "") +
            " free; lower n_ctx" + (need.n_seq > 1 ? ", n_seq" : "") +
            " or n_batch, or take a smaller model.";
    throw OutOfMemory(text);
}

// Says what stays in main memory, and settles it.
void settle_division(const Rooms& rooms, const Division& division, ModelOptions& model) {
    const auto n_layers = static_cast<int>(rooms.weights.layers.size());
    const auto first_layers = [&](int n) {
        return (n == 1 ? "the first" : "the first " + std::to_string(n)) + " of its " +
               std::to_string(n_layers) + " layers ";
    };
    std::string what;
    if (division.n_gpu_layers == 0) {
        what = "all of it stays";
        model.device = "none";
        model.rpc.clear();
        model.n_gpu_layers = 0;
    } else if (division.n_gpu_layers <= n_layers) {
        const int n = n_layers + 1 - division.n_gpu_layers;
        what = (division.n_cpu_moe > 0 ? "the experts and " : "") + first_layers(n) +
               (n > 1 || division.n_cpu_moe > 0 ? "stay" : "stays");
        model.n_gpu_layers = division.n_gpu_layers;
    } else {
        what = "the experts of " + first_layers(division.n_cpu_moe) + "stay";
    }
    model.n_cpu_moe = division.n_cpu_moe;
    warn("Not all of the model fits into the " + mib(rooms.target.bytes) + " that " +
         rooms.target.where + (rooms.target.devices.size() > 1 ? " have" : " has") +
         " free: " + what + " in main memory.");
}

}  // namespace

void settle_memory(const Header& target, TargetPlan& plan, const Header* draft, int n_draft_logits,
                   SessionOptions& options) {
    if (draft != nullptr && draft->weights.total > target.weights.total)
        warn("The draft model " + options.draft_model->model.path + " (" +
             mib(draft->weights.total) + ") is larger than the model it drafts for (" +
             mib(target.weights.total) + "): it will hardly make it faster.");
    const Room of_target = room(plan.model);
    const Rooms free{target.weights, plan.model.n_cpu_moe, of_target,
                     draft != nullptr ? room(options.draft_model->model) : of_target,
                     draft != nullptr && is_head(*draft)};
    const bool is_given = plan.context.n_ctx > 0;
    const int wanted =
        is_given ? plan.context.n_ctx : std::min(target.n_ctx_train, kDefaultContext);
    const int least = is_given ? wanted : std::min(wanted, kLeastContext);
    const auto need = [&](int n_ctx) {
        Need all{
            plan.context.n_seq, n_ctx, footprint(target, plan.context, n_ctx, plan.n_logits), {}};
        if (draft != nullptr)
            all.draft = footprint(*draft, {options.draft_model->context}, n_ctx, n_draft_logits);
        return all;
    };
    std::optional<int> n_ctx = longest(
        wanted, free.divisible() ? std::max(least, std::min(wanted, kLeastOnDevices)) : least,
        [&](int n) { return free.hold(need(n)); });
    std::optional<Division> division;
    if (!n_ctx && free.divisible())
        n_ctx = longest(wanted, least, [&](int n) {
            division = free.divided(need(n));
            return division.has_value();
        });
    if (!n_ctx) throw_too_big(need(least), free);
    if (*n_ctx < wanted)
        warn("Not enough memory: n_ctx is lowered to " + std::to_string(*n_ctx) + ".");
    plan.context.n_ctx = *n_ctx;
    if (division) {
        settle_division(free, *division, plan.model);
        return;
    }
    const auto settle_attention = [&](const Header& header, const ModelOptions& model,
                                      ContextOptions& context) {
        if (!faster_without_flash(header, model, context, *n_ctx)) return;
        context.flash_attn = Switch::off;
        if (!free.hold(need(*n_ctx))) context.flash_attn = Switch::automatic;
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
    if (fits(need.total(), free.bytes)) return;
    throw OutOfMemory(who + " needs " + mib(need.total()) + " of its own (KV memory for " +
                      std::to_string(context.n_ctx) + " tokens " + mib(need.kv) + ", computing " +
                      mib(need.compute) + "), but " + free.where + " has " + mib(free.bytes) +
                      " free; " + advice + ".");
}

}  // namespace specllama
