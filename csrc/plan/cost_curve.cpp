#include "plan/cost_curve.h"

#include <algorithm>
#include <cmath>

#include "plan/constants.h"

namespace specllama {

namespace {

// [n - 1]: log n.
const std::array<double, CostCurve::kMaxTokens> kLogs = [] {
    std::array<double, CostCurve::kMaxTokens> logs;
    for (int n = 1; n <= CostCurve::kMaxTokens; ++n) logs[n - 1] = std::log(n);
    return logs;
}();

double square(double x) { return x * x; }

// Also keeps what is learned far from what a double cannot hold.
bool usable(double seconds) { return seconds > 1e-9 && seconds < 1e6; }

// Of a time at some context, at least this much is left when the context's part is taken off.
constexpr double kLeastWithoutContext = 0.1;

}  // namespace

CostCurve::CostCurve() { start(); }

void CostCurve::start() {
    for (int n = 1; n <= kMaxTokens; ++n)
        log_seconds_[n - 1] =
            std::log(tuning::kPriorSeconds *
                     (1 + tuning::kPriorStep * std::pow(n - 1, tuning::kPriorPower)));
    speed_ = shape_ = 0;
    wander(tuning::kPriorSecondsSd, tuning::kShapeSd);
    learned_.fill(0);
    forget_known();
    observed_.fill(0);
    n_observed_ = 0;
    slope_ = ContextSlope();
}

void CostCurve::wander(double speed_sd, double shape_sd) {
    speed_ += square(speed_sd);
    shape_ += square(shape_sd);
}

// The shape's part goes by the logarithm of the smaller of both.
double CostCurve::covariance(int n, int m) const {
    const auto [low, high] = std::minmax(n, m);
    const double of_shape = kLogs[low - 1] + (n == m ? tuning::kStep : 0);
    return speed_ + shape_ * of_shape - learned_[high * (high - 1) / 2 + low - 1];
}

void CostCurve::observe(int n, int n_context, double seconds) {
    if (n < 1 || n > kMaxTokens || n_context < 0 || !usable(seconds)) return;
    wander(tuning::kSpeedWander, tuning::kShapeWander);
    const double of_context = slope_.seconds(n, n_context);
    const double alone = std::max(seconds - of_context, kLeastWithoutContext * seconds);
    const double most = tuning::kOutlier * std::sqrt(covariance(n, n) + square(tuning::kTimingSd));
    const double log_seconds =
        std::clamp(std::log(alone), log_seconds_[n - 1] - most, log_seconds_[n - 1] + most);
    learn(n, log_seconds, tuning::kTimingSd);
    slope_.observe(n, n_context, std::exp(log_seconds) + of_context);
    ++observed_[n - 1];
    ++n_observed_;
}

void CostCurve::learn(int n, double log_seconds, double sd) {
    Row with_n;
    for (int i = 0; i < kMaxTokens; ++i) with_n[i] = covariance(n, i + 1);
    const double total = with_n[n - 1] + square(sd);
    const double off = (log_seconds - log_seconds_[n - 1]) / total;
    double* row = learned_.data();
    for (int i = 0; i < kMaxTokens; row += ++i) {
        log_seconds_[i] += with_n[i] * off;
        const double gain = with_n[i] / total;
        for (int j = 0; j <= i; ++j) row[j] += gain * with_n[j];
    }
    forget_known();
}

void CostCurve::forget_known() {
    seconds_.fill(0);
    margins_.fill(0);
    int cheapest = kMaxTokens;
    for (int n = kMaxTokens; n > 0; --n) {
        if (log_seconds_[n - 1] <= log_seconds_[cheapest - 1]) cheapest = n;
        widths_[n - 1] = cheapest;
    }
}

int CostCurve::width(int n, int n_context) const {
    // One alone is what plain decoding does.
    if (n <= 1 || n > kMaxTokens) return n;
    const int wider = widths_[n - 1];
    if (wider == n) return n;
    double& margin = margins_[n - 1];
    if (margin == 0) margin = std::exp(tuning::kBeyondDoubt * doubt(wider, n));
    return seconds(wider, n_context) * margin < seconds(n, n_context) ? wider : n;
}

double CostCurve::seconds(int n, int n_context) const {
    const int known = std::clamp(n, 1, kMaxTokens);
    return at_least_one(known) * std::max(n, 1) / known +
           slope_.seconds(std::max(n, 1), std::max(n_context, 0));
}

// More tokens hardly ever cost less than one, though some processors' kernels for one are slow:
// that is believed as far as it is beyond doubt.
double CostCurve::at_least_one(int n) const {
    double& seconds = seconds_[n - 1];
    if (seconds > 0) return seconds;
    seconds = std::exp(log_seconds_[n - 1]);
    if (log_seconds_[n - 1] < log_seconds_[0])
        seconds = std::min(at_least_one(1), seconds * std::exp(tuning::kBeyondDoubt * doubt(n, 1)));
    return seconds;
}

double CostCurve::doubt(int n, int m) const {
    const double variance = covariance(n, n) + covariance(m, m) - 2 * covariance(n, m);
    return std::sqrt(std::max(variance, 0.0));
}

int CostCurve::next_probe(int n_max) const {
    n_max = std::min(n_max, kMaxTokens);
    for (int n = 1; n <= n_max; n *= 2)
        if (!measured(n)) return n;
    int most = 0;
    double most_doubt = tuning::kShapeSure;
    for (int n = 2; n <= n_max; ++n) {
        if (measured(n) || doubt(n, 1) <= most_doubt) continue;
        most = n;
        most_doubt = doubt(n, 1);
    }
    return most;
}

CurvePoints CostCurve::points() const {
    CurvePoints points{std::vector<double>(kMaxTokens), slope_.base(), slope_.per_token()};
    for (int n = 1; n <= kMaxTokens; ++n)
        if (measured(n)) points.seconds[n - 1] = std::exp(log_seconds_[n - 1]);
    return points;
}

void CostCurve::restore(const CurvePoints& points) {
    start();
    const int n_points = std::min<int>(static_cast<int>(points.seconds.size()), kMaxTokens);
    for (int n = 1; n <= n_points; ++n) {
        if (!usable(points.seconds[n - 1])) continue;
        learn(n, std::log(points.seconds[n - 1]), tuning::kTimingSd);
        ++observed_[n - 1];
        ++n_observed_;
    }
    if (!measured()) return;
    wander(tuning::kCachedSpeedSd, 0);
    const auto slope = [](double x) { return std::isfinite(x) && x > 0 ? x : 0; };
    slope_.set(slope(points.context_base), slope(points.context_per_token));
}

}  // namespace specllama
