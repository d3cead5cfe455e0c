#include "runtime/head_context.h"

#include <algorithm>
#include <string>
#include <utility>

#include "device/rope.h"
#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "llama/hidden_states.h"
#include "llama/kv_type.h"
#include "specllama/error.h"
#include "system/free_processors.h"
#include "system/host.h"

namespace specllama {

namespace {

// Rows of a batch. For an EAGLE-3 head llama.cpp reserves and computes logits for each of them.
constexpr int kRows = 64;

int count_layers(const Model& model, HeadContext::Kind kind) {
    return kind == HeadContext::Kind::mtp ? llama_model_n_layer_nextn(model.get()) : 1;
}

// Of an EAGLE-3 head, or of layers of multi-token prediction.
llama_context_params head_params(const Model& model, HeadContext::Kind kind,
                                 const ContextOptions& options, const Context& target) {
    llama_context_params params = llama_context_default_params();
    // llama.cpp lowers n_batch to n_ctx.
    params.n_ctx = std::max(options.n_ctx * options.n_seq, kRows);
    params.n_batch = params.n_ubatch = std::max(kRows, options.n_seq * count_layers(model, kind));
    params.n_seq_max = options.n_seq;
    params.kv_unified = true;
    params.n_outputs_max = kind == HeadContext::Kind::mtp ? options.n_seq : params.n_batch;
    params.n_threads = resolve_threads(options);
    params.n_threads_batch = params.n_threads;
    const KvTypes types = kv_types(kv_type_name(options));
    params.type_k = types.keys;
    params.type_v = types.values;
    params.no_perf = true;
    if (kind == HeadContext::Kind::mtp) params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    params.ctx_other = target.get();
    apply(options.rope, params);
    return params;
}

// The memory is the target's, so it must be described in the same way.
llama_context_params assistant_params(const Context& target) {
    llama_context_params params = target.params();
    params.n_batch = params.n_ubatch = params.n_outputs_max = params.n_seq_max;
    params.ctx_other = target.get();
    return params;
}

llama_context_ptr make_context(const Model& model, HeadContext::Kind kind,
                               const ContextOptions& options, const Context& target) {
    const std::string kv = kv_type_name(options);
    const llama_context_params params = kind == HeadContext::Kind::assistant
                                            ? assistant_params(target)
                                            : head_params(model, kind, options, target);

    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    llama_context_ptr context(llama_init_from_model(model.get(), params));
    if (context) return context;
    if (!assertions.failed().empty())
        throw ModelError("Cannot draft with the head of " + model.path() + ": " +
                         assertions.failed() + ".");
    if (errors.first().find("cache type") != std::string::npos)
        throw InvalidArgument("draft_kv_type \"" + kv + "\" does not fit the head of " +
                              model.path() + ": " + errors.first() + ".");
    throw OutOfMemory("There is not enough memory for the head of " + model.path() +
                      "; lower n_ctx.");
}

// Waits until everything is computed. Throws DecodeError if something went wrong.
void finish(int code, llama_context* context, const ErrorLog& errors) {
    if (code == 0) llama_synchronize(context);
    if (code == 0 && !errors.any()) return;
    throw DecodeError("llama.cpp failed to decode the head, code " + std::to_string(code) +
                      (errors.first().empty() ? "." : " (" + errors.first() + ")."));
}

}  // namespace

HeadContext::HeadContext(std::shared_ptr<const Model> model, Kind kind,
                         const ContextOptions& options, const Context& target)
    : model_(std::move(model)),
      kind_(kind),
      n_threads_(options.n_threads),
      context_(make_context(*model_, kind, options, target)),
      n_state_(llama_model_n_embd_out(model_->get())),
      n_layers_(count_layers(*model_, kind)),
      n_batch_(static_cast<int>(llama_n_batch(context_.get()))),
      batch_(n_batch_),
      states_(static_cast<std::size_t>(n_batch_) * n_state_) {
    // Where the graph gives states of some rows only, llama.cpp would read beyond them.
    hidden_states::keep_last_state(context_.get(),
                                   kind == Kind::mtp && model_->header().traits.mtp_crops);
}

void HeadContext::encode(const float* features, int n, float* states) {
    const std::size_t size = static_cast<std::size_t>(n) * n_state_;
    if (kind_ == Kind::mtp) {
        std::copy_n(features, size, states);
        return;
    }
    // The encoder reads no positions and writes to no memory, but llama.cpp demands the positions
    // that would come next.
    clear();
    const Position next = llama_memory_seq_pos_max(llama_get_memory(context_.get()), 0) + 1;
    for (int i = 0; i < n; ++i) batch_.add(0, next + i, 0, true);
    const ErrorLog errors;
    // llama.cpp only reads the features.
    const int code =
        llama_encode(context_.get(), batch_.view_without_tokens(const_cast<float*>(features)));
    finish(code, context_.get(), errors);
    std::copy_n(hidden_states::last_state(context_.get()), size, states);
    clear();
}

void HeadContext::adapt_threads() {
    if (n_threads_ > 0) return;
    const int n = free_threads(performance_cores());
    llama_set_n_threads(context_.get(), n, n);
}

void HeadContext::clear() { batch_.clear(); }

int HeadContext::add(Token token, const float* state, Position position, SequenceId sequence,
                     bool logits) {
    const int row = batch_.add(token, position, sequence, logits);
    std::copy_n(state, n_state_, states_.data() + static_cast<std::size_t>(row) * n_state_);
    return row;
}

void HeadContext::decode(int layer) {
    if (n_layers_ > 1) hidden_states::select_prediction_layer(context_.get(), layer);
    // For an EAGLE-3 head llama.cpp assumes that the first rows are the wanted ones: so all rows
    // are wanted, or none.
    if (kind_ == Kind::eagle3 && batch_.n_asking() > 0)
        for (int row = 0; row < batch_.size(); ++row) batch_.ask(row, true);
    const ErrorLog errors;
    const int code = llama_decode(context_.get(), batch_.view(states_.data()));
    finish(code, context_.get(), errors);
}

std::span<float> HeadContext::logits(int row) {
    float* logits = llama_get_logits_ith(context_.get(), row);
    if (logits == nullptr) throw DecodeError("llama.cpp gave no logits for a row of the head.");
    return {logits, static_cast<std::size_t>(model_->vocab().size())};
}

const float* HeadContext::state(int row) const {
    const float* state = hidden_states::last_state(context_.get(), row);
    if (state == nullptr) throw DecodeError("llama.cpp gave no state for a row of the head.");
    return state;
}

int HeadContext::size(SequenceId sequence) const {
    return llama_memory_seq_pos_max(llama_get_memory(context_.get()), sequence) + 1;
}

void HeadContext::cut(SequenceId sequence, int n) {
    llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, n, -1);
}

void HeadContext::copy(SequenceId from, SequenceId to, int n) {
    cut(to, 0);
    llama_memory_seq_cp(llama_get_memory(context_.get()), from, to, 0, n);
}

}  // namespace specllama
