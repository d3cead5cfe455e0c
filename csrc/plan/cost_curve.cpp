#include "plan/cost_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "clones.h"
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

// The bounds also keep all learned values within the range of a double.
bool usable(double seconds) { return seconds > 1e-9 && seconds < 1e6; }

// The fraction of a decode's time that is never attributed to its context.
constexpr double kLeastWithoutContext = 0.1;

}  // namespace

CostCurve::CostCurve() {
    for (int n = 1; n <= kMaxTokens; ++n) log_seconds_[n - 1] = tuning::kPriorPower * kLogs[n - 1];
    speed_ = square(tuning::kUnknownSd);
    shape_ = square(tuning::kBelievedSd);
    derive();
}

void CostCurve::observe(int n, int n_context, double seconds) {
    if (n < 1) return;
    width_switch_.note(n);
    if (n > kMaxTokens || n_context < 0 || !usable(seconds) || !width_switch_.steady()) return;
    last_ = n;
    speed_ += square(tuning::kSpeedWander);
    shape_ += square(tuning::kShapeWander);
    const double of_context = slope_.seconds(n, n_context);
    const double alone = std::max(seconds - of_context, kLeastWithoutContext * seconds);
    const double log_seconds = learn(n, std::log(alone), tuning::kBeyondDoubt);
    slope_.observe(n, n_context, std::exp(log_seconds) + of_context);
}

SPECLLAMA_CLONES("avx2")
double CostCurve::learn(int n, double log_seconds, double most) {
    Row column;
    // The shape is a Brownian motion over log n, so its covariance is that of the smaller n.
    for (int m = 1; m <= kMaxTokens; ++m)
        column[m - 1] = speed_ + shape_ * kLogs[std::min(n, m) - 1] - learned_[n - 1][m - 1];
    column[n - 1] += shape_ * tuning::kStep;
    const double sd = std::sqrt(column[n - 1] + square(tuning::kTimingSd));
    const double before = log_seconds_[n - 1];
    const double off = std::clamp((log_seconds - before) / sd, -most, most);
    for (double& one : column) one /= sd;
    for (int i = 0; i < kMaxTokens; ++i) {
        log_seconds_[i] += column[i] * off;
        for (int j = 0; j < kMaxTokens; ++j) learned_[i][j] += column[i] * column[j];
    }
    measured_[n - 1] = true;
    derive();
    return before + off * sd;
}

void CostCurve::derive() {
    for (int n = 1; n <= kMaxTokens; ++n) {
        // More tokens cost less than one only if the kernel for one token is slow. This is rare, so
        // a lower cost is accepted only beyond kBeyondDoubt.
        double believed = log_seconds_[n - 1];
        if (believed < log_seconds_[0])
            believed = std::min(log_seconds_[0], believed + tuning::kBeyondDoubt * doubt(n, 1));
        // Single precision is faster, and more precise than any timing.
        seconds_[n - 1] = std::exp(static_cast<float>(believed));
        optimism_[n - 1] = std::exp(static_cast<float>(-tuning::kOptimism * doubt(n, last_)));
    }
}

std::span<const double> CostCurve::decode_costs(int n_most, int n_context) const {
    // Widths beyond kMaxTokens are as uncertain as kMaxTokens.
    decode_costs_.assign(1, 0);
    for (int n = 1; n <= n_most; ++n)
        decode_costs_.push_back(optimism_[std::min(n, kMaxTokens) - 1] * seconds(n, n_context));
    return decode_costs_;
}

double CostCurve::seconds(int n, int n_context) const {
    n = std::max(n, 1);
    const int known = std::min(n, kMaxTokens);
    const double alone = seconds_[known - 1] * (static_cast<double>(n) / known);
    return alone + slope_.seconds(n, std::max(n_context, 0));
}

// The speed is common to both, so only the shape's variance counts.
double CostCurve::doubt(int n, int m) const {
    if (n == m) return 0;
    const double variance =
        shape_ * (std::abs(kLogs[n - 1] - kLogs[m - 1]) + 2 * tuning::kStep) -
        (learned_[n - 1][n - 1] + learned_[m - 1][m - 1] - 2 * learned_[n - 1][m - 1]);
    return std::sqrt(std::max(variance, 0.0));
}

int CostCurve::next_probe(int n_max) const {
    n_max = std::min(n_max, kMaxTokens);
    for (int n = 1; n <= n_max; n *= 2)
        if (!measured(n)) return n;
    int most = 0;
    double most_doubt = tuning::kBeyondDoubt * tuning::kTimingSd;
    for (int n = 2; n <= n_max; ++n) {
        if (measured(n) || doubt(n, 1) <= most_doubt) continue;
        most = n;
        most_doubt = doubt(n, 1);
    }
    return most;
}

CurvePoints CostCurve::points() const {
    CurvePoints points{std::vector<double>(kMaxTokens), slope_.base(), slope_.per_token(),
                       width_switch_.seconds()};
    for (int n = 1; n <= kMaxTokens; ++n)
        if (measured(n)) points.seconds[n - 1] = std::exp(log_seconds_[n - 1]);
    return points;
}

void CostCurve::restore(const CurvePoints& points) {
    *this = CostCurve();
    const int n_points = std::min<int>(static_cast<int>(points.seconds.size()), kMaxTokens);
    for (int n = 1; n <= n_points; ++n)
        if (usable(points.seconds[n - 1]))
            learn(n, std::log(points.seconds[n - 1]), std::numeric_limits<double>::infinity());
    if (!measured()) return;
    speed_ += square(tuning::kBelievedSd);
    // A token of context costs a small part of a decode, and a change of width a few decodes. Other
    // values come from a damaged file.
    const auto up_to = [this](double n_decodes, double x) {
        return x > 0 && x < n_decodes * seconds(1, 0) ? x : 0;
    };
    slope_.set(up_to(1, points.context_base), up_to(1, points.context_per_token));
    width_switch_.set_seconds(up_to(1000, points.width_switch));
}

}  // namespace specllama
