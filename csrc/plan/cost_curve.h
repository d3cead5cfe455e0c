#pragma once

#include <array>
#include <bitset>
#include <span>
#include <vector>

#include "plan/context_slope.h"
#include "plan/width_switch.h"
#include "specllama/types.h"

namespace specllama {

// A cost curve as numbers, to keep between sessions.
struct CurvePoints {
    // [n - 1]: seconds of a decode of n tokens at an empty context; 0: never measured.
    std::vector<double> seconds;
    // Seconds that each token of context adds: to a decode of one token, and in addition for each
    // further token of the decode.
    double context_base = 0;
    double context_per_token = 0;
    // Seconds that a change of n costs (WidthSwitch).
    double width_switch = 0;
};

// v(n, context): the seconds of one decode of n tokens, learned from observed decodes.
//
// log v is modelled as a prior curve plus an error, which is a Gaussian process over log n
// (Rasmussen and Williams, "Gaussian processes for machine learning", 2006, chapter 2). The error
// has two parts: the machine's speed, common to all n, and the shape, which is similar for near n.
// So one slow decode of 8 tokens moves all points together, and many of them change the shape near
// 8. A point without measurements follows the prior curve, moved to the height of its measured
// neighbours. Both parts drift, so old measurements lose weight.
//
// Not thread-safe, not even const members; but any thread may call points() while nothing changes.
class CostCurve {
 public:
    // The costs of wider decodes are extrapolated, and such decodes are ignored.
    static constexpr int kMaxTokens = kMaxSpecLength + 1;

    CostCurve();

    // Learns from one decode of n tokens after n_context tokens. Ignores seconds that are not
    // finite or outside 1e-9 to 1e6, n outside 1 to kMaxTokens, and a negative n_context.
    void observe(int n, int n_context, double seconds);

    // Expected seconds of a decode of n tokens (n >= 1), always positive and finite.
    double seconds(int n, int n_context) const;

    // [n]: seconds to assume when a decode of n tokens is chosen, for n from 0 to n_most. These are
    // the expected seconds, reduced by kOptimism times the uncertainty of their ratio to the last
    // decode's. (Optimism in the face of uncertainty: Auer, Cesa-Bianchi, Fischer, "Finite-time
    // analysis of the multiarmed bandit problem", 2002.) Valid until the next call of any member.
    std::span<const double> decode_costs(int n_most, int n_context) const;

    // The cost of a change of n. Decodes that were slower because of a change are ignored.
    WidthSwitch& width_switch() { return width_switch_; }
    const WidthSwitch& width_switch() const { return width_switch_; }

    // Standard deviation of log(v(n) / v(m)), both at most kMaxTokens.
    double doubt(int n, int m) const;

    // Whether any decode, or a decode of n tokens, was observed or restored from an earlier
    // session.
    bool measured() const { return measured_.any(); }
    bool measured(int n) const { return measured_[n - 1]; }

    // The n up to n_max that should be measured next: 1, 2, 4, 8, ..., then the most uncertain one.
    // 0: all are known well enough.
    int next_probe(int n_max) const;

    CurvePoints points() const;
    // Restarts from the points of an earlier session. Points outside the range of observe() are
    // ignored.
    void restore(const CurvePoints& points);

 private:
    using Row = std::array<double, kMaxTokens>;

    // One step of a Kalman filter with a measured log(seconds) for n, whose deviation is clipped to
    // `most` standard deviations. Returns the clipped value.
    double learn(int n, double log_seconds, double most);
    void derive();  // fills seconds_ and optimism_

    Row log_seconds_;  // [n - 1]: mean of the model, at an empty context
    Row seconds_;      // [n - 1]: derived from it
    Row optimism_;     // [n - 1]: factor by which decode_costs() reduces them
    // Covariance of the errors of log_seconds_, in parts: the accumulated variances of speed and
    // shape, minus learned_[n - 1][m - 1], by which decodes have reduced them.
    double speed_ = 0;
    double shape_ = 0;
    std::array<Row, kMaxTokens> learned_{};
    mutable std::vector<double> decode_costs_;
    std::bitset<kMaxTokens> measured_;
    int last_ = 1;  // tokens of the last observed decode
    ContextSlope slope_;
    WidthSwitch width_switch_;
};

}  // namespace specllama
