#include "plan/context_slope.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

void ContextSlope::set(double base, double per_token) {
    pairs_ = {};
    base_ = prior_base_ = base;
    per_token_ = prior_per_token_ = per_token;
}

void ContextSlope::observe(int n, int n_context, double seconds) {
    Pairs& pairs = pairs_[n - 1];
    if (n_context < pairs.context) {
        const double step = n_context - pairs.context;
        pairs.squares += step * step;
        pairs.products += step * (seconds - pairs.seconds);
    }
    pairs.context = n_context;
    pairs.seconds = seconds;
    fit();
}

// Weighted least squares for a and b, with the prior as a ridge. If one of them is negative, it is
// set to 0 and the other is fitted alone.
void ContextSlope::fit() {
    double unit = 0;
    double xx = 0, xz = 0, zz = 0, xy = 0, zy = 0;
    for (int n = 1; n <= static_cast<int>(pairs_.size()); ++n) {
        const Pairs& pairs = pairs_[n - 1];
        if (pairs.context < 0) continue;
        if (unit == 0) unit = pairs.seconds / n;
        const double scale = 1 / (pairs.seconds * pairs.seconds);
        const double x = pairs.squares * scale;
        const double z = n - 1;
        xx += x;
        xz += x * z;
        zz += x * z * z;
        const double y =
            (pairs.products - pairs.squares * (prior_base_ + prior_per_token_ * z)) * scale;
        xy += y;
        zy += y * z;
    }
    const double prior = tuning::kLongText * tuning::kLongText / (unit * unit);
    xx += prior;
    zz += prior;
    const double determinant = xx * zz - xz * xz;
    base_ = prior_base_ + (xy * zz - zy * xz) / determinant;
    per_token_ = prior_per_token_ + (zy * xx - xy * xz) / determinant;
    if (per_token_ < 0) {
        per_token_ = 0;
        base_ = prior_base_ + (xy + xz * prior_per_token_) / xx;
    } else if (base_ < 0) {
        base_ = 0;
        per_token_ = prior_per_token_ + (zy + xz * prior_base_) / zz;
    }
    base_ = std::max(base_, 0.0);
    per_token_ = std::max(per_token_, 0.0);
}

}  // namespace specllama
