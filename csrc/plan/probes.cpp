#include "plan/probes.h"

#include <algorithm>
#include <cmath>

namespace specllama {

void CostProbe::begin(int n, double seconds) {
    n_rounds_ = 0;
    n_ = n;
    believed_ = seconds;
}

void CostProbe::observe(int n, double seconds) {
    if (n == n_) {
        const bool cheaper =
            std::log(seconds / believed_) < -tuning::kBeyondDoubt * tuning::kTimingSd;
        interval_ = cheaper ? 1
                            : std::min<double>(tuning::kProbeSpacing * interval_,
                                               tuning::kProbeSpacingMost);
    }
    n_ = 0;
}

int ModelProbe::n_missing() const { return std::max(tuning::kProbeRun - 1 - n_right_, 0); }

void ModelProbe::end(bool right) {
    under_way_ = false;
    n_rounds_ = 0;
    if (right) {
        ++n_right_;
        return;
    }
    interval_ = n_right_ < tuning::kProbeRun / 2
                    ? std::min(2 * interval_, tuning::kProbeSpacingMost)
                    : std::max(interval_ / 2, 1);
    n_right_ = 0;
}

void ModelAccount::add(double saved, double plain, int n_tokens) {
    balance_ += saved;
    balance_ = balance_ > 0 ? balance_ * std::max(1 - n_tokens / tuning::kRateWindow, 0.0)
                            : std::min(balance_ + tuning::kForgiven * plain, 0.0);
}

}  // namespace specllama
