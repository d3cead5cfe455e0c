#pragma once

#include <array>
#include <bitset>
#include <span>
#include <vector>

#include "plan/context_slope.h"
#include "plan/width_switch.h"
#include "specllama/types.h"

namespace specllama {

// A cost curve as plain numbers, to be kept from one session to the next.
struct CurvePoints {
    // [n - 1]: seconds of a decode of n tokens at an empty context; 0: never measured.
    std::vector<double> seconds;
    // Seconds that each token of context adds: to a decode of one token, and to it for each further
    // token of the decode.
    double context_base = 0;
    double context_per_token = 0;
    // Seconds that a change of n costs: see WidthSwitch.
    double width_switch = 0;
};

// v(n, context): the seconds of one decode of n tokens, learned from the decodes that are made.
//
// log v is modelled as a guess plus an error, which is a Gaussian process over log n (Rasmussen and
// Williams, "Gaussian processes for machine learning", 2006, chapter 2). The error has two parts:
// the machine's speed, common to all n, and the shape, which is alike for near n. So one slow
// decode of 8 tokens moves all points together, many of them change the shape near 8, and a point
// that was never measured follows the guess from the height of its measured neighbours. Both parts
// wander, so old measurements count less and less.
//
// Not thread safe, const members included; but any thread may call points() while nothing changes.
class CostCurve {
 public:
    // Decodes of more tokens are extrapolated, and not learned from.
    static constexpr int kMaxTokens = kMaxSpecLength + 1;

    CostCurve();

    // Learns from one decode of n tokens behind n_context. Ignored are seconds outside 1e-9 to 1e6
    // or not finite, n outside 1 to kMaxTokens, and a negative n_context.
    void observe(int n, int n_context, double seconds);

    // Expected seconds of a decode of n tokens (n >= 1), always positive and finite.
    double seconds(int n, int n_context) const;

    // [n]: seconds to reckon with when a decode of n tokens is chosen, for n from 0 to at least
    // n_most: the expected seconds, lowered by kOptimism times the doubt about their ratio to the
    // last decode's. (Optimism in the face of uncertainty: Auer, Cesa-Bianchi, Fischer,
    // "Finite-time analysis of the multiarmed bandit problem", 2002.) Valid until the next call of
    // any member.
    std::span<const double> decode_costs(int n_most, int n_context) const;

    // What it costs if n changes. Decodes that were dearer for that are not learned from.
    WidthSwitch& width_switch() { return width_switch_; }
    const WidthSwitch& width_switch() const { return width_switch_; }

    // Standard deviation of log(v(n) / v(m)), both at most kMaxTokens.
    double doubt(int n, int m) const;

    // Whether any decode was observed, or restored from an earlier session; and one of n tokens.
    bool measured() const { return measured_.any(); }
    bool measured(int n) const { return measured_[n - 1]; }

    // The n up to n_max that most needs a measurement of its own: 1, 2, 4, 8, ..., then the one
    // most in doubt; 0: all are known well enough.
    int next_probe(int n_max) const;

    CurvePoints points() const;
    // Starts anew from the points of an earlier session; points that observe() would not take are
    // ignored.
    void restore(const CurvePoints& points);

 private:
    using Row = std::array<double, kMaxTokens>;

    // One step of a Kalman filter: log(seconds) was seen for n, and counts as at most `most`
    // standard deviations off. Returns the value that it counted as.
    double learn(int n, double log_seconds, double most);
    void derive();  // fills seconds_ and optimism_

    Row log_seconds_;  // [n - 1]: mean of the model, at an empty context
    Row seconds_;      // [n - 1]: what follows from it
    Row optimism_;     // [n - 1]: factor by which decode costs() lowers them
    // Covariance of the errors of log_seconds_, in parts: the variances that wandering has added up
    // to, less learned_[n - 1][m - 1], which decodes have taken off again.
    double speed_ = 0;
    double shape_ = 0;
    std::array<Row, kMaxTokens> learned_{};
    mutable std::vector<double> decode_costs_;
    std::bitset<kMaxTokens> measured_;
    int last_ = 1;  // tokens of the last decode that was observed
    ContextSlope slope_;
    WidthSwitch width_switch_;
};

}  // namespace specllama
