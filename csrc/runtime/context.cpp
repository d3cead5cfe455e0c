#include "runtime/context.h"

#include <algorithm>
#include <string>
#include <utility>

#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "llama/hidden_states.h"
#include "llama/kv_type.h"
#include "specllama/error.h"
#include "system/free_processors.h"
#include "system/host.h"

namespace specllama {

namespace {

llama_flash_attn_type flash_attention(Switch wish) {
    switch (wish) {
        case Switch::on:
            return LLAMA_FLASH_ATTN_TYPE_ENABLED;
        case Switch::off:
            return LLAMA_FLASH_ATTN_TYPE_DISABLED;
        case Switch::automatic:
            break;
    }
    return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

// The positions of a sequence are a multiple of this. llama.cpp would round up by itself, but with
// a warning for several sequences, and after it has cut the batch to the requested positions.
constexpr int kPositionsAtOnce = 256;

// Positions that the memory needs.
int n_positions(const ContextPlan& plan) {
    // One more for the companion of a single token.
    const int n_one = plan.n_ctx + (plan.never_alone ? 1 : 0);
    const int n_steps = (n_one + kPositionsAtOnce - 1) / kPositionsAtOnce;
    return plan.n_seq * n_steps * kPositionsAtOnce;
}

// Branches take ids of the memory that all sequences share. In a sliding window that wraps around,
// their cells would overwrite other tokens' cells.
int count_branches(const Model& model, const ContextPlan& plan, int n_wished) {
    const bool wraps = llama_model_n_swa(model.get()) > 0 && !plan.whole_window;
    if (plan.per_sequence_streams || wraps || llama_model_is_recurrent(model.get()) ||
        llama_model_is_hybrid(model.get()))
        return 0;
    // Each leaf takes an id, and at least one row of the batch.
    const auto n_ids = std::min(static_cast<int>(llama_max_parallel_sequences()), plan.n_batch);
    return std::min(n_wished, (n_ids - plan.n_seq) / plan.n_seq);
}

llama_context_params make_params(const ContextPlan& plan, int n_logits, int n_branches) {
    const int companion = plan.never_alone ? 1 : 0;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = n_positions(plan);
    params.n_batch = batch_size(plan);
    // A batch is one micro-batch: a sliding window can be cut back only to the beginning of its
    // last micro-batch.
    params.n_ubatch = params.n_batch;
    params.n_seq_max = plan.n_seq * (1 + n_branches) + plan.n_forks;
    params.kv_unified = params.n_seq_max > 1 && !plan.per_sequence_streams;
    // If the architecture has no snapshots, llama.cpp treats this as 0.
    params.n_rs_seq = snapshots(plan, n_logits);
    // Without this llama.cpp reserves a row of logits for every token of a micro-batch.
    params.n_outputs_max = std::max(std::min(plan.n_seq * n_logits, plan.n_batch), 1 + companion);
    // llama.cpp needs at least as many rows of logits as sequences, forks included.
    if (plan.n_forks > 0) params.n_outputs_max = std::max(params.n_outputs_max, params.n_seq_max);
    params.n_threads = resolve_threads(plan);
    params.n_threads_batch = params.n_threads;
    params.flash_attn_type = flash_attention(plan.flash_attn);
    const KvTypes types = kv_types(kv_type_name(plan));
    params.type_k = types.keys;
    params.type_v = types.values;
    params.no_perf = true;
    // Without whole_window a sliding window keeps only the tokens in its reach; Memory checks
    // whether it can still be cut.
    params.swa_full = plan.whole_window;
    apply(plan.rope, params);
    return params;
}

llama_context_ptr make_context(const Model& model, const ContextPlan& plan,
                               const llama_context_params& params) {
    // llama.cpp takes the context of all sequences together for that of one, and warns; it also
    // warns about whole windows.
    const ErrorLog errors(params.n_seq_max > 1 ? ErrorLog::Warnings::dropped
                                               : ErrorLog::Warnings::shown);
    const AssertGuard assertions;
    llama_context_ptr context(llama_init_from_model(model.get(), params));
    if (context) return context;
    if (!assertions.failed().empty())
        throw ModelError("Cannot use " + model.path() + " as a model: " + assertions.failed() +
                         ".");
    if (errors.first().find("cache type") != std::string::npos ||
        errors.first().find("flash_attn") != std::string::npos)
        throw InvalidArgument("kv_type \"" + kv_type_name(plan) +
                              "\" does not fit this model and flash_attn: " + errors.first() + ".");
    const std::string which =
        plan.n_seq == 1 ? "a context" : std::to_string(plan.n_seq) + " contexts";
    throw OutOfMemory("There is not enough memory for " + which + " of " +
                      std::to_string(plan.n_ctx) + " tokens, with " +
                      std::to_string(memory_available() >> 20) + " MiB free; lower n_ctx" +
                      (plan.n_seq == 1 ? "." : " or n_seq."));
}

// Several sequences of some models need separate streams: recurrent states always have them, a
// sliding window does not free a cell that two sequences share, and some models rotate positions by
// an amount that depends on the size of the whole memory.
//
// Values that llama.cpp would lower or round by itself are resolved here, before anything is
// computed from them: it cuts batches to the size of the memory.
ContextPlan resolved(ContextPlan plan, const Model& model) {
    check(plan);
    plan.n_batch = std::min(plan.n_batch, n_positions(plan));
    plan.per_sequence_streams =
        plan.n_seq > 1 && (plan.per_sequence_streams || llama_model_is_recurrent(model.get()) ||
                           llama_model_is_hybrid(model.get()) ||
                           llama_model_n_swa(model.get()) > 0 || model.header().long_rope);
    return plan;
}

}  // namespace

Context::Context(std::shared_ptr<const Model> model, const ContextPlan& plan, int n_logits,
                 int n_branches)
    : model_(std::move(model)),
      plan_(resolved(plan, *model_)),
      one_by_one_(model_->header().traits.one_sequence),
      n_branches_(count_branches(*model_, plan_, n_branches)),
      params_(make_params(plan_, n_logits, n_branches_)),
      context_(make_context(*model_, plan_, params_)),
      memory_(context_.get(), {.n_seq = plan_.n_seq + plan_.n_forks,
                               .n_branches = n_branches_,
                               .has_sliding_window = llama_model_n_swa(model_->get()) > 0 ||
                                                     model_->header().traits.hidden_windows,
                               .per_sequence_streams = plan_.per_sequence_streams,
                               .whole_window = plan_.whole_window,
                               .checkpoints = {.most = plan_.ctx_checkpoints,
                                               .most_bytes = in_bytes(plan_.checkpoint_ram)}}),
      companion_(2) {
    model_->apply_adapters(context_.get());
}

int Context::n_threads() const { return llama_n_threads(context_.get()); }

void Context::adapt_threads() {
    if (plan_.n_threads > 0) return;
    const int n = free_threads(params_.n_threads);
    if (n == n_threads()) return;
    llama_set_n_threads(context_.get(), n, n);
    inform("Decoding with " + std::to_string(n) + " of " + std::to_string(params_.n_threads) +
           " threads" + (n < params_.n_threads ? ": other programs use the processor." : "."));
}

void Context::decode(Batch& batch) {
    if (!plan_.never_alone) {
        decode_now(batch);
        return;
    }
    // The last layer computes only the rows that request logits, so there must be more than one of
    // these, too.
    const bool alone = batch.n_asking() == 1;
    if (batch.size() > 1) {
        const int other = batch.asks(0) ? 1 : 0;
        if (alone) batch.ask(other, true);
        decode_now(batch);
        if (alone) batch.ask(other, false);
        return;
    }
    companion_.clear();
    const Token token = batch.token(0);
    const Position position = batch.position(0);
    const SequenceId sequence = batch.sequence(0);
    companion_.add(token, position, sequence, alone);
    companion_.add(token, position + 1, sequence, alone);
    decode_now(companion_);
    memory_.rewind(sequence, position + 1);
}

void Context::decode_now(Batch& batch) {
    memory_.expect_decode();
    for (int row = batch.size() - 1; row >= 0; --row)
        memory_.expect(batch.sequence(row), batch.position(row));
    check_decode(batch.size(),
                 [&](llama_context* context) { return llama_decode(context, batch.view()); });
}

void Context::decode_by(SequenceId sequence, Position first, int n_positions,
                        const std::function<int(llama_context*)>& decode) {
    memory_.expect_decode();
    memory_.expect(sequence, first);
    check_decode(n_positions, decode);
    memory_.extend(sequence, first + n_positions);
}

void Context::check_decode(int n_rows, const std::function<int(llama_context*)>& decode) {
    const ErrorLog errors;
    int code = 0;
    try {
        code = decode(context_.get());
    } catch (...) {  // out of memory
        memory_.invalidate();
        throw;
    }
    if (code == 0) llama_synchronize(context_.get());
    if (code == 0 && !errors.any()) return;
    memory_.invalidate();
    const std::string detail = errors.first().empty() ? "" : " (" + errors.first() + ")";
    switch (code) {
        case 0:  // a GPU computes later, and Metal reports a failure only in the log
            throw DecodeError("The device failed in a decode" + detail + ".");
        case 1:
            throw DecodeError("The KV memory has no room for a batch of " + std::to_string(n_rows) +
                              " tokens" + detail + "; raise n_ctx or give a shorter prompt.");
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
    if (logits == nullptr) throw DecodeError("llama.cpp returned no logits for a decoded row.");
    return {logits, static_cast<std::size_t>(model_->vocab().size())};
}

void Context::keep_states(const std::vector<int>& layers) {
    kept_layers_ = layers;
    for (const int layer : layers) hidden_states::keep_layer_input(context_.get(), layer);
    if (layers.empty()) hidden_states::keep_last_state(context_.get(), false);
    n_features_ = layers.empty()
                      ? llama_model_n_embd_out(model_->get())
                      : llama_model_n_embd(model_->get()) * static_cast<int>(layers.size());
}

void Context::copy_states(int row, float* out) const {
    if (kept_layers_.empty()) {
        const float* states = hidden_states::last_state(context_.get());
        std::copy_n(states + static_cast<std::size_t>(row) * n_features_, n_features_, out);
        return;
    }
    const int n = llama_model_n_embd(model_->get());
    for (const int layer : kept_layers_) {
        const float* states = hidden_states::layer_input(context_.get(), layer);
        out = std::copy_n(states + static_cast<std::size_t>(row) * n, n, out);
    }
}

}  // namespace specllama
