#include "runtime/drafting/head_context.h"

#include <algorithm>
#include <cstddef>

#include "llama/hidden_states.h"

namespace specllama {

namespace {

// Rows of a batch. For an EAGLE-3 head llama.cpp reserves and computes logits for each of them.
constexpr int kRows = 64;

int count_layers(const Model& model, HeadContext::Kind kind) {
    return kind == HeadContext::Kind::mtp ? llama_model_n_layer_nextn(model.get()) : 1;
}

int batch_size(const Model& model, HeadContext::Kind kind, int n_seq) {
    return std::max(kRows, n_seq * count_layers(model, kind));
}

llama_context_params with_kind(llama_context_params params, HeadContext::Kind kind) {
    if (kind != HeadContext::Kind::mtp) return params;
    params.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
    params.n_outputs_max = params.n_seq_max;
    return params;
}

// The memory is the target's, so it must have the same parameters.
llama_context_params assistant_params(const Context& target) {
    llama_context_params params = target.params();
    params.n_batch = params.n_ubatch = params.n_outputs_max = params.n_seq_max;
    params.ctx_other = target.get();
    return params;
}

}  // namespace

HeadContext::HeadContext(const std::shared_ptr<const Model>& model, Kind kind,
                         const ContextOptions& options, const Context& target)
    : DraftContext(
          model,
          kind == Kind::assistant
              ? assistant_params(target)
              : with_kind(params_for(options, target, options.n_ctx * options.n_seq,
                                     batch_size(*model, kind, options.n_seq)),
                          kind),
          options,
          // If the graph returns states of only some rows, llama.cpp would read beyond them.
          kind == Kind::mtp && model->header().traits.mtp_crops),
      kind_(kind),
      n_layers_(count_layers(*model, kind)),
      states_(static_cast<std::size_t>(n_batch()) * n_state()) {}

void HeadContext::encode(const float* features, int n, float* states) {
    const std::size_t length = static_cast<std::size_t>(n) * n_state();
    if (kind_ == Kind::mtp) {
        std::copy_n(features, length, states);
        return;
    }
    // The encoder reads no positions and writes no memory, but llama.cpp requires the next
    // positions.
    clear();
    const Position next = size(0);
    for (int i = 0; i < n; ++i) batch().add(0, next + i, 0, true);
    // llama.cpp only reads the features.
    DraftContext::encode(batch().view_without_tokens(const_cast<float*>(features)));
    std::copy_n(state(0), length, states);
    clear();
}

int HeadContext::add(Token token, const float* state, Position position, SequenceId sequence,
                     bool logits) {
    const int row = batch().add(token, position, sequence, logits);
    std::copy_n(state, n_state(), states_.data() + static_cast<std::size_t>(row) * n_state());
    return row;
}

void HeadContext::decode(int layer) {
    if (n_layers_ > 1) hidden_states::select_prediction_layer(get(), layer);
    // For an EAGLE-3 head llama.cpp assumes that the first rows request logits, so either all rows
    // do or none.
    if (kind_ == Kind::eagle3 && batch().n_asking() > 0)
        for (int row = 0; row < batch().size(); ++row) batch().ask(row, true);
    DraftContext::decode(batch().view(states_.data()));
}

}  // namespace specllama
