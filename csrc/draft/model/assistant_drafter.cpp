#include "draft/model/assistant_drafter.h"

#include <algorithm>

#include "gguf/head_file.h"
#include "specllama/error.h"

namespace specllama {

AssistantDrafter::AssistantDrafter(const std::shared_ptr<const Model>& target,
                                   const DraftPlan& plan, const Header& assistant,
                                   const ProgressFunction& progress)
    : sampler_(plan, target->vocab().size()) {
    check_assistant(plan.model.path, target->header());
    assistant_ = Model::load(plan.model, Kernels::fastest, assistant, progress);
    check_vocabulary(*assistant_, *target, "The assistant");
}

void AssistantDrafter::attach(Context& target) {
    target_ = &target;
    context_.emplace(assistant_, HeadContext::Kind::assistant, ContextOptions(), target);
    target.keep_states({});
    tokens_.reserve(target.n_ctx() + kMaxSpecLength);
}

void AssistantDrafter::begin(SequenceId sequence, TokenSpan, TokenSpan) {
    Seen& seen = seen_[sequence];
    seen.position = -1;
    seen.state.resize(target_->n_features());
    sampler_.begin(sequence);
}

void AssistantDrafter::process(SequenceId sequence, TokenSpan tokens, Position first,
                               std::span<const int> rows) {
    const int n = std::min(static_cast<int>(rows.size()), static_cast<int>(tokens.size()) - first);
    if (n <= 0) return;
    Seen& seen = seen_.at(sequence);
    target_->copy_states(rows[n - 1], seen.state.data());
    seen.position = first + n - 1;
}

void AssistantDrafter::propose(std::span<DraftRequest> proposals) {
    context_->adapt_threads();
    for (DraftRequest& proposal : proposals) {
        const Seen& seen = seen_.at(proposal.sequence);
        const auto n_tokens = static_cast<int>(proposal.tokens.size());
        // The target's memory must hold all tokens but the last, and the state of the last one
        // there must have been seen.
        if (!proposal.draft.empty() || !proposal.wants_more() || seen.position != n_tokens - 2 ||
            context_->size(proposal.sequence) != n_tokens + proposal.n_media - 1)
            continue;
        try {
            draft(proposal, seen);
        } catch (const Error& error) {
            proposal.error = error.what();
        }
    }
}

void AssistantDrafter::draft(DraftRequest& proposal, const Seen& seen) {
    tokens_.assign(proposal.tokens.begin(), proposal.tokens.end());
    const float* state = seen.state.data();
    const Position position = seen.position + proposal.n_media + 1;
    bool continues = true;
    while (continues) {
        context_->clear();
        const int row = context_->add(tokens_.back(), state, position, proposal.sequence, true);
        context_->decode();
        ++proposal.n_decoded;
        continues =
            sampler_.extend(proposal, context_->logits(row), tokens_) && proposal.wants_more();
        state = context_->state(row);
    }
}

}  // namespace specllama
