#pragma once

#include "plan/thread_curves.h"

namespace specllama {

// The cost of using a draft model. It works in steps: each drafts one token, or one block of
// tokens, for every sequence that wants one. The first step also processes the tokens that the
// model has not seen.
//
// Also keeps the net gain of the draft model over all requests: a model that is never right should
// not process every prompt, but without trying, its quality stays unknown. Losses are forgiven at a
// rate of kNegligible of the time, and gains are forgotten over kLongText tokens.
class DraftCost {
 public:
    // Cost of the draft model's own decodes.
    ThreadCurves& curves() { return curves_; }
    const CostCurve& curve() const { return curves_.now(); }

    // Tokens per step and sequence. If more than 1, a draft has one step.
    void set_tokens_per_step(int n) { tokens_per_step_ = n; }
    // Maximum number of tokens of a draft.
    int longest() const { return tokens_per_step_ == 1 ? kMaxSpecLength : tokens_per_step_; }
    // Steps of a draft of n tokens after its first n_drafted tokens.
    int n_steps(int n, int n_drafted) const;

    // Seconds of a step for n sequences, per sequence; 0 before the first observation, so that the
    // first step is taken.
    double step(int n, int n_context) const;

    // Additional seconds of the first step if the model must process n_unprocessed tokens; 0 before
    // the first observation.
    double prefill_cost(int n_unprocessed, int n_context) const;

    // Learns from n_steps steps that took `seconds` in total, drafted n_drafted tokens (or blocks)
    // for all sequences and processed n_unprocessed tokens.
    void observe(int n_steps, int n_drafted, int n_unprocessed, int n_context, double seconds);

    // Seconds that the draft model has saved; negative: lost.
    double net_gain() const { return net_gain_; }
    // Restores the net gain of earlier sessions.
    void restore_net_gain(double seconds) { net_gain_ = seconds; }
    // Adds a round of n_tokens tokens: the seconds that the draft model saved, and the seconds of
    // plain decoding for these tokens.
    void account(double time_saved, double plain, int n_tokens);

 private:
    ThreadCurves curves_;
    int tokens_per_step_ = 1;
    // Seconds per token of processing at least CostCurve::kMaxTokens tokens, such as a prompt; 0:
    // unknown. Such wide decodes are cheaper per token than any in the curve.
    double prefill_seconds_ = 0;
    double net_gain_ = 0;
};

}  // namespace specllama
