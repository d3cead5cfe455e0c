#include "plan/model_probe.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

bool ModelProbe::begin(double loss, double step) {
    const int n_missing = std::max(tuning::kProbeRun - 1 - n_right_, 0);
    if (lost_ + loss + n_missing * step > tuning::kForgiven * seconds_) return false;
    lost_ += loss;
    under_way_ = true;
    return true;
}

void ModelProbe::end(bool right) {
    under_way_ = false;
    n_rounds_ = 0;
    if (right) {
        ++n_right_;
        return;
    }
    interval_ = n_right_ < tuning::kProbeRun / 2
                    ? std::min(2 * interval_, tuning::kProbeIntervalMost)
                    : std::max(interval_ / 2, 1);
    n_right_ = 0;
}

}  // namespace specllama
