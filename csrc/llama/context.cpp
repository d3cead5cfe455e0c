#include "llama/context.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "llama/backend.h"
#include "llama/host.h"
#include "specllama/error.h"

namespace specllama {

namespace {

constexpr int kDefaultContext = 8192;
constexpr int kMaxBatch = 8192;
constexpr int kMaxThreads = 512;  // ggml's own limit

void check_range(const char* name, int value, int low, int high, const char* zero) {
    if (value >= low && value <= high) return;
    throw InvalidArgument(std::string(name) + " must be from " + std::to_string(low) + " to " +
                          std::to_string(high) + zero + ", not " + std::to_string(value) + ".");
}

ggml_type kv_type(const std::string& name) {
    constexpr std::array kTypes = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                   GGML_TYPE_Q8_0, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0,
                                   GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL};
    std::string all;
    for (const ggml_type type : kTypes) {
        if (name == ggml_type_name(type)) return type;
        all += (all.empty() ? "" : ", ") + std::string(ggml_type_name(type));
    }
    throw InvalidArgument("kv_type must be one of " + all + ", not \"" + name + "\".");
}

llama_flash_attn_type flash_attention(FlashAttention wish) {
    switch (wish) {
        case FlashAttention::on:
            return LLAMA_FLASH_ATTN_TYPE_ENABLED;
        case FlashAttention::off:
            return LLAMA_FLASH_ATTN_TYPE_DISABLED;
        case FlashAttention::automatic:
            break;
    }
    return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

// Whether main memory can hold the KV memory. Asking first is kinder than to be killed for taking
// it: an operating system that promises more than it has says no only when it is used.
bool fits(const Model& model, int n_ctx, int n_batch, ggml_type type) {
    const std::uint64_t free = memory_available();
    if (free == 0 || model.on_device()) return true;
    const double number =
        static_cast<double>(ggml_type_size(type)) / static_cast<double>(ggml_blck_size(type));
    // The attention mask of a batch comes on top, and something is left to the system.
    const double mask = 4.0 * n_ctx * n_batch;
    return n_ctx * model.kv_bytes_per_token(number) + mask < 0.9 * static_cast<double>(free);
}

// Writes the n_ctx it settled on into `options`.
llama_context_ptr make_context(const Model& model, ContextOptions& options, int n_logits) {
    check_range("n_ctx", options.n_ctx, 0, 1 << 30, " (0 is the default)");
    check_range("n_batch", options.n_batch, 1, kMaxBatch, "");
    check_range("n_threads", options.n_threads, 0, kMaxThreads, " (0 is the default)");

    llama_context_params params = llama_context_default_params();
    params.n_batch = options.n_batch;
    // One micro-batch: a sliding window can be cut back to where its last micro-batch began.
    params.n_ubatch = params.n_batch;
    params.n_seq_max = 1;
    // Without this llama.cpp reserves a row of logits for every token of a micro-batch.
    params.n_outputs_max = std::min(n_logits, options.n_batch);
    params.n_threads = options.n_threads > 0 ? options.n_threads : performance_cores();
    params.n_threads_batch = params.n_threads;
    params.flash_attn_type = flash_attention(options.flash_attn);
    params.type_k = params.type_v = kv_type(options.kv_type);
    params.no_perf = true;
    // A sliding window keeps what it reaches, not the whole text: Memory knows when it is too late
    // to cut.
    params.swa_full = false;

    // The default gives way when memory is short; what was asked for does not.
    int n_ctx = options.n_ctx > 0 ? options.n_ctx : Context::default_n_ctx(model);
    while (true) {
        params.n_ctx = n_ctx;
        const ErrorLog errors;
        llama_context_ptr context;
        if (fits(model, n_ctx, options.n_batch, params.type_k))
            context.reset(llama_init_from_model(model.get(), params));
        if (context) {
            options.n_ctx = n_ctx;
            return context;
        }
        if (errors.first().find("cache type") != std::string::npos ||
            errors.first().find("flash_attn") != std::string::npos)
            throw InvalidArgument("kv_type \"" + options.kv_type +
                                  "\" does not fit this model and flash_attn: " + errors.first() +
                                  ".");
        if (options.n_ctx > 0 || n_ctx <= 512)
            throw OutOfMemory("There is not enough memory for a context of " +
                              std::to_string(n_ctx) + " tokens, with " +
                              std::to_string(memory_available() >> 20) + " MiB free; lower n_ctx.");
        n_ctx /= 2;
        warn("Not enough memory: n_ctx is lowered to " + std::to_string(n_ctx) + ".");
    }
}

}  // namespace

Batch::Batch(int capacity)
    : tokens_(capacity),
      positions_(capacity),
      sequences_(capacity),
      sequence_pointers_(capacity),
      n_sequences_(capacity, 1),
      logits_(capacity) {
    for (int i = 0; i < capacity; ++i) sequence_pointers_[i] = &sequences_[i];
}

int Batch::add(Token token, Position position, SequenceId sequence, bool logits) {
    tokens_[n_] = token;
    positions_[n_] = position;
    sequences_[n_] = sequence;
    logits_[n_] = logits;
    return n_++;
}

Context::Context(std::shared_ptr<const Model> model, const ContextOptions& options, int n_logits)
    : model_(std::move(model)),
      options_(options),
      context_(make_context(*model_, options_, n_logits)),
      memory_(context_.get()) {}

int Context::default_n_ctx(const Model& model) {
    return std::min(model.n_ctx_train(), kDefaultContext);
}

int Context::n_threads() const { return llama_n_threads(context_.get()); }

void Context::decode(const Batch& batch) {
    auto& b = const_cast<Batch&>(batch);  // llama.cpp takes non-const pointers but does not write
    const ErrorLog errors;
    const int code = llama_decode(
        context_.get(), {batch.n_, b.tokens_.data(), nullptr, b.positions_.data(),
                         b.n_sequences_.data(), b.sequence_pointers_.data(), b.logits_.data()});
    if (code == 0) {
        llama_synchronize(context_.get());
        return;
    }
    const std::string detail = errors.first().empty() ? "" : " (" + errors.first() + ")";
    switch (code) {
        case 1:
            throw DecodeError("The KV memory has no room for a batch of " +
                              std::to_string(batch.n_) + " tokens" + detail +
                              "; raise n_ctx or give a shorter prompt.");
        case 2:
            throw DecodeError("llama.cpp aborted the decode" + detail + ".");
        case -1:
            throw DecodeError("llama.cpp refused the batch as invalid" + detail + ".");
        default:
            throw DecodeError("llama.cpp failed to decode, code " + std::to_string(code) + detail +
                              ".");
    }
}

std::span<float> Context::logits(int row) {
    float* logits = llama_get_logits_ith(context_.get(), row);
    if (logits == nullptr) throw DecodeError("llama.cpp gave no logits for a row that it decoded.");
    return {logits, static_cast<std::size_t>(model_->vocab().size())};
}

}  // namespace specllama
