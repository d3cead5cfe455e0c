#include "plan/draft_cost.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

double DraftCost::step(int n, int n_context) const {
    return curve_.measured() ? curve_.seconds(n, n_context) / n : 0;
}

double DraftCost::catch_up(int n_behind, int n_context) const {
    if (n_behind >= CostCurve::kMaxTokens && behind_seconds_ > 0) return n_behind * behind_seconds_;
    if (!curve_.measured()) return 0;
    return curve_.seconds(1 + n_behind, n_context) - curve_.seconds(1, n_context);
}

// The first step is wider than the others. The time of all is divided among them in proportion to
// what the curve expects of each.
void DraftCost::observe(int n_steps, int n_drafted, int n_behind, int n_context, double seconds) {
    const int n = (n_drafted + n_steps - 1) / n_steps;
    if (n_behind >= CostCurve::kMaxTokens) {
        const double steps = curve_.measured() ? n_steps * curve_.seconds(n, n_context) : 0;
        if (seconds > steps) behind_seconds_ = (seconds - steps) / n_behind;
        return;
    }
    const double first = curve_.seconds(n + n_behind, n_context);
    const double later = curve_.seconds(n, n_context);
    const double share = seconds / (first + (n_steps - 1) * later);
    curve_.observe(n + n_behind, n_context, share * first);
    if (n_steps > 1) curve_.observe(n, n_context, share * later);
}

void DraftCost::account(double saved, double plain, int n_tokens) {
    balance_ += saved;
    balance_ = balance_ > 0 ? balance_ * std::max(1 - n_tokens / tuning::kLongText, 0.0)
                            : std::min(balance_ + tuning::kNegligible * plain, 0.0);
}

}  // namespace specllama
