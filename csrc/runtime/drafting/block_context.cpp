#include "runtime/drafting/block_context.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace specllama {

namespace {

// States that are processed at once.
constexpr int kRows = 64;

}  // namespace

// The blocks of all sequences are decoded in one batch.
BlockContext::BlockContext(std::shared_ptr<const Model> model, const BlockFormat& format,
                           int n_draft, const ContextOptions& options, const Context& target)
    : DraftContext(std::move(model),
                   params_for(options, target, options.n_seq * options.n_ctx,
                              std::max(kRows, options.n_seq * (n_draft + format.first_row()))),
                   options),
      format_(format),
      n_block_(n_draft + format.first_row()),
      n_features_(static_cast<int>(format.layers.size()) * n_state()),
      features_(static_cast<std::size_t>(n_batch()) * n_features_) {
    llama_set_causal_attn(get(), format.causal);
    if (format.kind == BlockFormat::Kind::dflash2) logits_.resize(this->model().vocab().size());
}

void BlockContext::add_states(const float* features, Position position, SequenceId sequence) {
    const int row = batch().add(0, position, sequence, false);
    std::copy_n(features, n_features_,
                features_.data() + static_cast<std::size_t>(row) * n_features_);
}

void BlockContext::inject() {
    if (batch().size() == 0) return;
    llama_batch states = batch().view_without_tokens(features_.data());
    // Positions have three parts for images, and one unused. For text the three are equal.
    if (llama_model_rope_type(model().get()) == LLAMA_ROPE_TYPE_MROPE) {
        const std::span<const Position> positions(states.pos, states.n_tokens);
        positions_.clear();
        for (int part = 0; part < 3; ++part)
            positions_.insert(positions_.end(), positions.begin(), positions.end());
        positions_.resize(4 * positions.size());
        states.pos = positions_.data();
    }
    DraftContext::decode(states);
    clear();
}

int BlockContext::add_block(Token last, Position position, SequenceId sequence) {
    // A lattice needs no logits.
    const bool logits = format_.kind != BlockFormat::Kind::dflash2;
    const int row = batch().add(last, position, sequence, logits);
    for (int i = 1; i < n_block_; ++i) batch().add(format_.mask, position + i, sequence, logits);
    return row + format_.first_row();
}

void BlockContext::decode() { DraftContext::decode(batch().view()); }

std::span<float> BlockContext::logits(int first_row, int i, TokenSpan drafted) {
    const int row = first_row + i;
    if (format_.kind != BlockFormat::Kind::dflash2) return DraftContext::logits(row);
    return lattice_logits(row, i > 0 ? std::optional(drafted.back()) : std::nullopt);
}

// A row of the lattice has the ids of its candidates, then, for each candidate of the row before,
// the scores of its own candidates. In the first row, these scores are all equal.
std::span<float> BlockContext::lattice_logits(int row, std::optional<Token> before) {
    const auto top_k = static_cast<std::size_t>(format_.top_k);
    const auto candidates = [&](int of_row) { return std::span(state(of_row), top_k); };
    std::ranges::fill(logits_, -std::numeric_limits<float>::infinity());
    std::size_t predecessor = 0;
    if (before) {
        const auto all = candidates(row - 1);
        predecessor = std::ranges::find(all, static_cast<float>(*before)) - all.begin();
        if (predecessor == top_k) return logits_;
    }
    const float* scores = state(row) + top_k + predecessor * top_k;
    const auto own = candidates(row);
    for (std::size_t k = 0; k < top_k; ++k)
        if (own[k] >= 0 && own[k] < static_cast<float>(logits_.size()))
            logits_[static_cast<std::size_t>(own[k])] = scores[k];
    return logits_;
}

std::optional<float> BlockContext::confidence(int first_row, int i) const {
    if (!format_.has_confidence) return {};
    const float confidence = *state(first_row + i);
    return confidence >= 0 && confidence <= 1 ? confidence : 0;
}

}  // namespace specllama
