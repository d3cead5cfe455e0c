#include "plan/context_slope.h"

#include <algorithm>

#include "plan/constants.h"

namespace specllama {

void ContextSlope::set(double base, double per_token) {
    moments_ = {};
    base_ = prior_base_ = base;
    per_token_ = prior_per_token_ = per_token;
}

void ContextSlope::observe(int n, int n_context, double seconds) {
    Moments& m = moments_[n - 1];
    constexpr double kKeep = 1 - 1 / tuning::kSlopeWindow;
    m.weight = kKeep * m.weight + 1;
    const double from_mean = n_context - m.context;
    m.context += from_mean / m.weight;
    m.seconds += (seconds - m.seconds) / m.weight;
    m.variance = kKeep * m.variance + from_mean * (n_context - m.context);
    m.covariance = kKeep * m.covariance + from_mean * (seconds - m.seconds);
    fit();
}

// Weighted least squares for two numbers, about the prior. A negative one is set to 0 and the other
// fitted alone.
void ContextSlope::fit() {
    double unit = 0;
    double xx = 0, xz = 0, zz = 0, xy = 0, zy = 0;
    for (int n = 1; n <= static_cast<int>(moments_.size()); ++n) {
        const Moments& m = moments_[n - 1];
        if (m.weight == 0) continue;
        if (unit == 0) unit = m.seconds / n;
        const double scale = 1 / (m.seconds * m.seconds);
        const double x = m.variance * scale;
        const double z = n - 1;
        xx += x;
        xz += x * z;
        zz += x * z * z;
        const double y = (m.covariance - m.variance * (prior_base_ + prior_per_token_ * z)) * scale;
        xy += y;
        zy += y * z;
    }
    const double prior = tuning::kSlopePrior / (unit * unit);
    xx += prior;
    zz += prior;
    const double most = tuning::kSlopeMost * unit;
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
    base_ = std::clamp(base_, 0.0, most);
    per_token_ = std::clamp(per_token_, 0.0, most);
}

}  // namespace specllama
