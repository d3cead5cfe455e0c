#pragma once

#include <array>
#include <bitset>
#include <span>
#include <vector>

#include "plan/context_slope.h"
#include "specllama/types.h"

namespace specllama {

// A cost curve as plain numbers, to be kept from one session to the next.
struct CurvePoints {
    // [n - 1]: of a decode of n tokens at an empty context; 0: never measured.
    std::vector<double> seconds;
    // Seconds that each token of context adds to a decode of one, and more for each further token.
    double context_base = 0;
    double context_per_token = 0;
};

// v(n, context): the seconds of one decode of n tokens, learned from the decodes that are made.
//
// The logarithm of v is a guess plus an error that is a Gaussian process over log n (Rasmussen and
// Williams, "Gaussian processes for machine learning", 2006, chapter 2): one part common to all n,
// the machine's speed, and one that is alike for near n, the shape. So one slow decode of 8 tokens
// moves all points together, many of them change the shape near 8, and a point that was never
// measured has the guess's shape on the height of its measured neighbours. Both parts wander, so
// that old measurements count less and less.
//
// One thread at a time, also where nothing changes; but for points().
class CostCurve {
 public:
    // Decodes of more tokens are extrapolated, and not learned from.
    static constexpr int kMaxTokens = kMaxSpecLength + 1;

    CostCurve();

    // Takes in what a decode of n tokens took. Times that are not positive numbers, or no times
    // of a decode (over 1e6 s), and n and contexts that cannot be, are ignored.
    void observe(int n, int n_context, double seconds);

    // n >= 1. Always positive and finite.
    double seconds(int n, int n_context) const;

    // Rows of the cheapest decode that has room for n: n, or more, where kernels take a whole block
    // of rows in less time than a part of one, beyond doubt.
    int width(int n, int n_context) const;

    // [n]: seconds that a decode of n tokens counts as when it is chosen, for all n up to n_most
    // and maybe more: as many as are believed, less what these are in doubt beside the last
    // decode's. (Optimism in the face of uncertainty: Auer, Cesa-Bianchi, Fischer, "Finite-time
    // analysis of the multiarmed bandit problem", 2002.) pads: with as many rows as width() says;
    // the same in every call. Valid until the next call of any member, const ones included.
    std::span<const double> prices(int n_most, int n_context, bool pads) const;

    // Standard deviation of log(v(n) / v(m)), both at most kMaxTokens.
    double doubt(int n, int m) const;

    // Whether any decode was observed, now or in the session that the points come from.
    bool measured() const { return measured_.any(); }
    bool measured(int n) const { return measured_[n - 1]; }

    // Which n up to n_max is most worth a measurement of its own: 1, 2, 4, 8, ..., then what is
    // least certain; 0: all are known well enough.
    int next_probe(int n_max) const;

    CurvePoints points() const;
    // Starts anew from the points of an earlier session. Those that are no positive numbers are
    // ignored.
    void restore(const CurvePoints& points);

 private:
    using Row = std::array<double, kMaxTokens>;

    // The step of a Kalman filter: log_seconds of n were seen, which count as at most so many
    // standard deviations off. Returns as what they count.
    double learn(int n, double log_seconds, double most);
    void wander(double speed_sd, double shape_sd);
    void derive();  // what follows from log_seconds_
    double learned(int n, int m) const;

    Row log_seconds_;  // [n - 1], at an empty context
    // [n - 1]: width(n) at an empty context.
    std::array<unsigned char, kMaxTokens> widths_;
    // The covariances of the errors of log_seconds_: what wandering has made of them, and what of
    // that the decodes have taken off again, [n - 1][m - 1] for m up to n.
    double speed_ = 0;
    double shape_ = 0;
    std::array<Row, kMaxTokens> learned_{};
    Row seconds_;  // [n - 1]: at an empty context
    // What prices() has found.
    mutable std::vector<double> prices_;
    mutable int priced_context_ = 0;
    std::bitset<kMaxTokens> measured_;
    int last_ = 1;  // tokens of the last decode that was observed
    ContextSlope slope_;
};

}  // namespace specllama
