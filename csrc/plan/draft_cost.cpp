#include "plan/draft_cost.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

int DraftCost::n_steps(int n, int n_drafted) const {
    const auto steps = [this](int tokens) {
        return (tokens + tokens_per_step_ - 1) / tokens_per_step_;
    };
    return std::max(steps(n) - steps(n_drafted), 0);
}

double DraftCost::step(int n, int n_context) const {
    return curve().measured() ? curve().seconds(n, n_context) / n : 0;
}

double DraftCost::prefill_cost(int n_unprocessed, int n_context) const {
    if (n_unprocessed >= CostCurve::kMaxTokens && prefill_seconds_ > 0)
        return n_unprocessed * prefill_seconds_;
    if (!curve().measured()) return 0;
    return curve().seconds(1 + n_unprocessed, n_context) - curve().seconds(1, n_context);
}

// The first step is wider than the others. The total time is divided among the steps in proportion
// to their expected costs.
void DraftCost::observe(int n_steps, int n_drafted, int n_unprocessed, int n_context,
                        double seconds) {
    const int n = (n_drafted + n_steps - 1) / n_steps;
    if (n_unprocessed >= CostCurve::kMaxTokens) {
        const double steps = curve().measured() ? n_steps * curve().seconds(n, n_context) : 0;
        if (seconds > steps) prefill_seconds_ = (seconds - steps) / n_unprocessed;
        return;
    }
    const double first = curve().seconds(n + n_unprocessed, n_context);
    const double later = curve().seconds(n, n_context);
    const double share = seconds / (first + (n_steps - 1) * later);
    curves_.now().observe(n + n_unprocessed, n_context, share * first);
    if (n_steps > 1) curves_.now().observe(n, n_context, share * later);
}

void DraftCost::account(double time_saved, double plain, int n_tokens) {
    net_gain_ += time_saved;
    net_gain_ = net_gain_ > 0 ? net_gain_ * std::max(1 - n_tokens / tuning::kLongText, 0.0)
                              : std::min(net_gain_ + tuning::kNegligible * plain, 0.0);
}

}  // namespace specllama
