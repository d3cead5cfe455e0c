#pragma once

#include "plan/cost_curve.h"

namespace specllama {

// What it takes to ask a draft model: steps, each of which drafts a token for every sequence that
// is to have one, and before the first of them what the model has to take in that it has not seen.
//
// And what asking has brought, in all requests: one that is never right should not read the prompt
// of each, and one that is never asked would never be known to be better. What it has lost is
// forgiven by a small part of the time, what it has saved is forgotten after some screens of text.
class DraftCost {
 public:
    // Of its decodes.
    CostCurve& curve() { return curve_; }

    // Seconds of a token by a step that drafts one for each of n sequences; none as long as nothing
    // was observed: the first is found out by taking it.
    double step(int n, int n_context) const;

    // Seconds that the first step takes longer with so many tokens to take in; none as long as
    // nothing was observed.
    double catch_up(int n_behind, int n_context) const;

    // What so many steps took together, by which the model drafted so many tokens and took in
    // n_behind that it had not seen.
    void observe(int n_steps, int n_drafted, int n_behind, int n_context, double seconds);

    // Seconds that asking has saved; negative: it has lost so much.
    double balance() const { return balance_; }
    // Of a round: seconds saved by asking, its tokens, and the seconds that they take plainly.
    void account(double saved, double plain, int n_tokens);

 private:
    CostCurve curve_;
    // Seconds of one among many tokens to take in, a prompt's, say; 0: not known. Wide decodes are
    // cheaper by the token than what the curve knows of narrower ones.
    double behind_seconds_ = 0;
    double balance_ = 0;
};

}  // namespace specllama
