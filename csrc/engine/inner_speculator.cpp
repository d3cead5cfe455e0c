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

    turn_.phase = &phases_.at(proposal.sequence);
    turn_.n_tokens = static_cast<int>(proposal.tokens.size()) + n_drafted;
    turn_.n_pending = n_pending;
    turn_.max_draft = n_most;
    turn_.offers.assign(1, {EvidenceSpan(own_.draft.evidence).subspan(n_drafted)});
    planner_.choose(std::span(&turn_, 1));
    return TokenSpan(own_.draft.tokens).subspan(n_drafted, turn_.choice.n_draft);
}

void InnerSpeculator::observe(const Proposal& proposal, double seconds) {
    // Longer ones are prompts.
    const int n_decoded = turn_.choice.n_draft;
    if (const int n = turn_.n_pending + n_decoded; n <= CostCurve::kMaxTokens)
        planner_.observe_decode(n, turn_.n_tokens, seconds);
    const std::size_t n_before = turn_.n_tokens - proposal.tokens.size();
    const TokenSpan guess = TokenSpan(own_.draft.tokens).subspan(n_before);
    const TokenSpan came = TokenSpan(proposal.draft.tokens).subspan(n_before);
    const auto n_right = static_cast<int>(std::ranges::mismatch(guess, came).in1 - guess.begin());
    turn_.offers[0].n_right = n_right;
    turn_.n_accepted = std::min(n_right, n_decoded);
    // A guess that was decoded in vain is no better than a wrong one: also where the draft ended
    // before it.
    const auto n_came = static_cast<int>(came.size());
    turn_.n_judged = n_came <= n_decoded ? n_came + 1 : n_came;
    n_guessed_ += n_decoded;
    n_right_ += turn_.n_accepted;
    planner_.learn(turn_);
}

}  // namespace specllama
