#include "runtime/drafting/draft_context.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "llama/hidden_states.h"
#include "llama/kv_type.h"
#include "specllama/error.h"
#include "system/free_processors.h"

namespace specllama {

namespace {

llama_context_ptr make_context(const Model& model, const llama_context_params& params,
                               const ContextOptions& options) {
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    llama_context_ptr context(llama_init_from_model(model.get(), params));
    if (context) return context;
    if (!assertions.failed().empty())
        throw ModelError("Cannot draft with the head of " + model.path() + ": " +
                         assertions.failed() + ".");
    if (errors.first().find("cache type") != std::string::npos)
        throw InvalidArgument("draft_kv_type \"" + kv_type_name(options) +
                              "\" does not fit the head of " + model.path() + ": " +
                              errors.first() + ".");
    throw OutOfMemory("There is not enough memory for the head of " + model.path() +
                      "; lower n_ctx.");
}

// Waits until everything is computed. Throws DecodeError after an error.
void finish(int code, llama_context* context, const ErrorLog& errors) {
    if (code == 0) llama_synchronize(context);
    if (code == 0 && !errors.any()) return;
    throw DecodeError("llama.cpp failed to decode the head, code " + std::to_string(code) +
                      (errors.first().empty() ? "." : " (" + errors.first() + ")."));
}

}  // namespace

llama_context_params DraftContext::params_for(const ContextOptions& options, const Context& target,
                                              int n_cells, int n_batch) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = n_cells + n_batch;
    params.n_batch = params.n_ubatch = params.n_outputs_max = n_batch;
    params.n_seq_max = options.n_seq;
    params.kv_unified = true;
    params.n_threads = resolve_threads(options);
    params.n_threads_batch = params.n_threads;
    const KvTypes types = kv_types(kv_type_name(options));
    params.type_k = types.keys;
    params.type_v = types.values;
    params.no_perf = true;
    params.ctx_other = target.get();
    apply(options.rope, params);
    return params;
}

DraftContext::DraftContext(std::shared_ptr<const Model> model, const llama_context_params& params,
                           const ContextOptions& options, bool wanted_only)
    : model_(std::move(model)),
      most_threads_(options.n_threads > 0 ? 0 : params.n_threads),
      context_(make_context(*model_, params, options)),
      n_state_(llama_model_n_embd_out(model_->get())),
      n_batch_(static_cast<int>(llama_n_batch(context_.get()))),
      batch_(n_batch_) {
    hidden_states::keep_last_state(context_.get(), wanted_only);
}

void DraftContext::adapt_threads() {
    if (most_threads_ == 0) return;
    const int n = free_threads(most_threads_);
    llama_set_n_threads(context_.get(), n, n);
}

void DraftContext::decode(const llama_batch& batch) {
    const ErrorLog errors;
    const int code = llama_decode(context_.get(), batch);
    finish(code, context_.get(), errors);
}

void DraftContext::encode(const llama_batch& batch) {
    const ErrorLog errors;
    const int code = llama_encode(context_.get(), batch);
    finish(code, context_.get(), errors);
}

std::span<float> DraftContext::logits(int row) {
    float* logits = llama_get_logits_ith(context_.get(), row);
    if (logits == nullptr) throw DecodeError("llama.cpp returned no logits for a row of the head.");
    return {logits, static_cast<std::size_t>(model_->vocab().size())};
}

const float* DraftContext::state(int row) const {
    const float* state = hidden_states::last_state(context_.get(), row);
    if (state == nullptr) throw DecodeError("llama.cpp returned no state for a row of the head.");
    return state;
}

int DraftContext::size(SequenceId sequence) const {
    return llama_memory_seq_pos_max(llama_get_memory(context_.get()), sequence) + 1;
}

void DraftContext::cut(SequenceId sequence, int n) {
    llama_memory_seq_rm(llama_get_memory(context_.get()), sequence, n, -1);
}

void DraftContext::copy(SequenceId from, SequenceId to, int n) {
    cut(to, 0);
    llama_memory_seq_cp(llama_get_memory(context_.get()), from, to, 0, n);
}

}  // namespace specllama
