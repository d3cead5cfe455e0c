#include "llama/footprint.h"

#include <algorithm>
#include <string>

#include "ggml-backend.h"
#include "llama.h"
#include "llama/backend.h"
#include "llama/host.h"
#include "llama/kv_type.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr int kDefaultContext = 8192;
constexpr int kLeastContext = 512;

struct Room {
    std::uint64_t bytes = 0;  // 0: not known
    std::string where;
};

// Where the weights go: to the GPUs, if there are any and all layers are wanted there.
Room room(const ModelOptions& options) {
    const int n_layers = options.n_gpu_layers.value_or(-1);
    Room gpus;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        const auto type = ggml_backend_dev_type(device);
        if (type != GGML_BACKEND_DEVICE_TYPE_GPU && type != GGML_BACKEND_DEVICE_TYPE_IGPU) continue;
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        gpus.bytes += free;
        gpus.where +=
            (gpus.where.empty() ? "" : " and ") + std::string(ggml_backend_dev_name(device));
    }
    if (n_layers == -1 && gpus.bytes > 0) return gpus;
    // Some layers here, some there: llama.cpp itself must say whether that fits.
    if (n_layers != 0 && gpus.bytes > 0) return {};
    return {memory_available(), "main memory"};
}

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + 1048575) >> 20) + " MiB"; }

struct Need {
    int n_seq;
    int n_ctx;
    Footprint target;
    Footprint draft;  // zeros without one
};

bool fits(const Need& need, const Room& room) {
    return room.bytes == 0 || need.target.total() + need.draft.total() <= room.bytes;
}

[[noreturn]] void throw_too_big(const Need& need, const Room& room) {
    std::string text = "The model needs " + mib(need.target.total()) + " (weights " +
                       mib(need.target.weights) + ", KV memory for " +
                       (need.n_seq > 1 ? std::to_string(need.n_seq) + " times " : "") +
                       std::to_string(need.n_ctx) + " tokens " + mib(need.target.kv) +
                       ", computing " + mib(need.target.compute) + ")";
    if (need.draft.total() > 0) text += " and the draft model " + mib(need.draft.total());
    text += ", but " + room.where + " has " + mib(room.bytes) + " free; lower n_ctx" +
            (need.n_seq > 1 ? ", n_seq" : "") + " or n_batch" +
            (room.where == "main memory" ? "" : ", or n_gpu_layers") + ", or take a smaller model.";
    throw OutOfMemory(text);
}

}  // namespace

Footprint footprint(const Header& header, const ContextOptions& context, int n_ctx, int n_logits) {
    const ggml_type type = kv_type(context.kv_type.value_or("f16"));
    const double number =
        static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
    // Of every token of a batch there is, in 32 bits, what a layer works on, and a row of the
    // attention mask; and of some a row of logits.
    const double n_positions = static_cast<double>(context.n_seq) * n_ctx;
    const int n_rows = std::min(context.n_seq * n_logits, context.n_batch);
    const double n_seen = context.split ? n_ctx : n_positions;
    const double numbers = context.n_batch * (header.compute_numbers_per_token + n_seen) +
                           2.0 * n_rows * header.n_vocab;
    return {header.weight_bytes,
            static_cast<std::uint64_t>(n_positions * header.kv_numbers_per_token * number),
            static_cast<std::uint64_t>(4 * numbers)};
}

void settle_memory(const Header& target, const Header* draft, SessionOptions& options) {
    if (draft != nullptr && draft->weight_bytes > target.weight_bytes)
        warn("The draft model " + options.draft_model->model.path + " (" +
             mib(draft->weight_bytes) + ") is larger than the model it drafts for (" +
             mib(target.weight_bytes) + "): it will hardly make it faster.");
    const Room free = room(options.model);
    const bool is_given = options.context.n_ctx > 0;
    const int wanted =
        is_given ? options.context.n_ctx : std::min(target.n_ctx_train, kDefaultContext);
    int n_ctx = wanted;
    const auto need = [&] {
        const int n_logits = options.spec_length.value_or(kMaxSpecLength) + 1;
        Need all{
            options.context.n_seq, n_ctx, footprint(target, options.context, n_ctx, n_logits), {}};
        if (draft != nullptr) all.draft = footprint(*draft, options.draft_model->context, n_ctx, 1);
        return all;
    };
    while (!is_given && n_ctx > kLeastContext && !fits(need(), free))
        n_ctx = std::max(n_ctx / 2, kLeastContext);
    if (!fits(need(), free)) throw_too_big(need(), free);
    if (n_ctx < wanted)
        warn("Not enough memory: n_ctx is lowered to " + std::to_string(n_ctx) + ".");
    options.context.n_ctx = n_ctx;
}

}  // namespace specllama
