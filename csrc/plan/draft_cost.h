#pragma once

#include "plan/thread_curves.h"

namespace specllama {

// What asking a draft model costs. It works in steps: each drafts one token, or one block of
// tokens, for every sequence that wants one, and the first step also takes in the tokens that the
// model has not seen yet.
//
// Also keeps a net gain of what asking has brought in all requests, since a model that is never
// right should not read every prompt, and one that is never asked would never be known to be
// better. Losses are forgiven at kNegligible of the time, gains are forgotten over kLongText
// tokens.
class DraftCost {
 public:
    // Cost of the draft model's own decodes.
    ThreadCurves& curves() { return curves_; }
    const CostCurve& curve() const { return curves_.now(); }

    // Tokens that a step drafts for a sequence. If there are several, a draft has one step.
    void set_tokens_per_step(int n) { tokens_per_step_ = n; }
    // Most tokens of a draft.
    int longest() const { return tokens_per_step_ == 1 ? kMaxSpecLength : tokens_per_step_; }
    // Steps that a draft of n tokens takes after its first n_drafted tokens.
    int n_steps(int n, int n_drafted) const;

    // Seconds of a step for n sequences, for each of these; 0 before anything was observed, so that
    // the first step is taken.
    double step(int n, int n_context) const;

    // Extra seconds of the first step when the model must take in n_unprocessed tokens; 0 before
    // anything was observed.
    double prefill_cost(int n_unprocessed, int n_context) const;

    // Learns from n_steps steps that took `seconds` together, drafted n_drafted tokens, or blocks,
    // for all sequences and took in n_unprocessed tokens.
    void observe(int n_steps, int n_drafted, int n_unprocessed, int n_context, double seconds);

    // Seconds that asking has saved; negative: lost.
    double net_gain() const { return net_gain_; }
    // Starts from the net gain of earlier sessions.
    void restore_net_gain(double seconds) { net_gain_ = seconds; }
    // Books a round of n_tokens tokens: seconds saved by asking, and seconds of the same tokens by
    // plain decoding.
    void account(double time_saved, double plain, int n_tokens);

 private:
    ThreadCurves curves_;
    int tokens_per_step_ = 1;
    // Seconds per token of taking in at least CostCurve::kMaxTokens tokens, such as a prompt; 0:
    // not known. Such wide decodes are cheaper per token than any that the curve knows.
    double prefill_seconds_ = 0;
    double net_gain_ = 0;
};

}  // namespace specllama
