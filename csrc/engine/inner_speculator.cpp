#include "engine/inner_speculator.h"

#include <algorithm>
#include <span>

namespace specllama {

TokenSpan InnerSpeculator::guess(const Proposal& proposal, int n_pending, int n_most) {
    const int n_drafted = proposal.draft.size();
    own_.sequence = proposal.sequence;
    own_.tokens = proposal.tokens;
    own_.sampler = proposal.sampler;
    own_.draft = proposal.draft;
    own_.max_tokens = n_drafted + n_most;
    if (drafter_ != nullptr && n_most > 0) drafter_->propose(std::span(&own_, 1));

    situation_ = {.n_tokens = static_cast<int>(proposal.tokens.size()) + n_drafted,
                  .n_pending = n_pending,
                  .max_draft = n_most};
    const EvidenceSpan drafts[] = {evidence()};
    n_decoded_ = planner_.choose(situation_, phases_.at(proposal.sequence), drafts).n_draft;
    return TokenSpan(own_.draft.tokens).subspan(n_drafted, n_decoded_);
}

void InnerSpeculator::observe(const Proposal& proposal, double seconds) {
    // Longer ones are prompts.
    if (const int n = situation_.n_pending + n_decoded_; n <= CostCurve::kMaxTokens)
        planner_.observe_decode(n, situation_.n_tokens, seconds);
    const std::size_t n_before = situation_.n_tokens - proposal.tokens.size();
    const TokenSpan guess = TokenSpan(own_.draft.tokens).subspan(n_before);
    const TokenSpan came = TokenSpan(proposal.draft.tokens).subspan(n_before);
    const auto n_right = static_cast<int>(std::ranges::mismatch(guess, came).in1 - guess.begin());
    n_guessed_ += n_decoded_;
    n_right_ += std::min(n_right, n_decoded_);
    // A guess that was decoded in vain is no better than a wrong one: also where the draft ended
    // before it.
    const auto n_came = static_cast<int>(came.size());
    Phase& phase = phases_.at(proposal.sequence);
    planner_.observe(phase, situation_.n_tokens, evidence(), n_right,
                     n_came <= n_decoded_ ? n_came + 1 : n_came);
    planner_.settle(phase, situation_, n_decoded_, std::min(n_right, n_decoded_));
}

}  // namespace specllama
