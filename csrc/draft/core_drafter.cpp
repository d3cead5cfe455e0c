#include "draft/core_drafter.h"

#include <algorithm>
#include <utility>

#include "draft/ngram/match.h"

namespace specllama {

int add_rest(SampledDraft& draft, const SampledDraft& other, int most) {
    const int n_own = draft.size();
    const int n = std::min(other.size(), most);
    if (n <= n_own || draft.drawn() || other.drawn() ||
        !std::ranges::equal(draft.tokens, TokenSpan(other.tokens).first(n_own)))
        return 0;
    for (int t = n_own; t < n; ++t) draft.push(other.tokens[t], other.evidence[t]);
    return n - n_own;
}

int share_evidence(SampledDraft& draft, const SampledDraft& other) {
    if (draft.empty() || other.empty() || draft.drawn() || other.drawn()) return 0;
    const Evidence& first = other.evidence.front();
    if (first.source != Source::match || first.length < draft.evidence.front().length) return 0;
    const auto n = std::ranges::mismatch(draft.tokens, other.tokens).in1 - draft.tokens.begin();
    std::copy_n(other.evidence.begin(), n, draft.evidence.begin());
    return static_cast<int>(n);
}

TokenSpan DraftRequest::with_draft(std::vector<Token>& buffer) const {
    if (draft.empty()) return tokens;
    const TokenSpan last = tokens.last(std::min<std::size_t>(tokens.size(), kMaxMatch));
    buffer.assign(last.begin(), last.end());
    buffer.insert(buffer.end(), draft.tokens.begin(), draft.tokens.end());
    return buffer;
}

ExternalDrafter::ExternalDrafter(std::shared_ptr<Drafter> drafter) : drafter_(std::move(drafter)) {}

void ExternalDrafter::begin(SequenceId sequence, TokenSpan prompt, TokenSpan reference) {
    drafter_->begin(sequence, prompt, reference);
}

void ExternalDrafter::propose(std::span<DraftRequest> requests) {
    proposals_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const DraftRequest& request = requests[i];
        Proposal& proposal = proposals_[i];
        proposal.sequence = request.sequence;
        proposal.tokens = request.tokens;
        proposal.max_tokens = request.max_tokens;
        proposal.max_alternatives = request.max_alternatives;
        proposal.keep_drafting = nullptr;
        if (const auto* keep_drafting = request.keep_drafting)
            proposal.keep_drafting = [this, keep_drafting](const Draft& draft) {
                so_far_.assign(draft);
                return (*keep_drafting)(so_far_);
            };
        proposal.draft = request.draft;
        proposal.error.clear();
    }
    drafter_->propose(proposals_);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].draft.assign(proposals_[i].draft);
        requests[i].error = proposals_[i].error;
    }
}

void ExternalDrafter::observe(SequenceId sequence, const Draft& draft, int n_accepted, Token next) {
    drafter_->observe(sequence, draft, n_accepted, next);
}

bool ExternalDrafter::has_step_cost() const { return drafter_->has_step_cost(); }

int ExternalDrafter::n_unprocessed(SequenceId sequence, int n_tokens) const {
    return drafter_->n_unprocessed(sequence, n_tokens);
}

void ExternalDrafter::end(SequenceId sequence) { drafter_->end(sequence); }

}  // namespace specllama
