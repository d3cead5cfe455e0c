#include "plan/probes.h"

#include <algorithm>
#include <cmath>

namespace specllama {

void ProbeSpacing::end(bool useful) {
    n_rounds_ = 0;
    interval_ =
        useful ? std::max(interval_ / 2, 1) : std::min(2 * interval_, tuning::kProbeIntervalMost);
}

void CostProbe::observe(int n, double seconds) {
    if (n_ > 0)
        spacing_.end(n == n_ &&
                     std::log(seconds / believed_) < -tuning::kBeyondDoubt * tuning::kTimingSd);
    n_ = 0;
}

int ModelProbe::n_missing() const { return std::max(tuning::kProbeRun - 1 - n_right_, 0); }

void ModelProbe::end(bool right) {
    under_way_ = false;
    if (!right) spacing_.end(n_right_ >= tuning::kProbeRun / 2);
    n_right_ = right ? n_right_ + 1 : 0;
}

}  // namespace specllama
