#include "plan/thread_curves.h"

#include <utility>

namespace specllama {

void ThreadCurves::set_threads(int n) {
    if (n == now_) return;
    if (now_ == kUnknown) {
        auto unnumbered = curves_.extract(kUnknown);
        unnumbered.key() = n;
        curves_.insert(std::move(unnumbered));
        first_ = n;
    } else if (!curves_.contains(n)) {
        const CostCurve& last = now();
        CostCurve& added = curves_[n];
        added.restore(last.points());
        added.width_switch() = last.width_switch();
    }
    now_ = n;
}

}  // namespace specllama
