#include "session/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "llama/batch.h"
#include "plan/constants.h"
#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

constexpr SequenceId kSequence = 0;

// Fixed, so that two runs measure the same.
constexpr unsigned kSeed = 1;

// Number of decodes in still_holds().
constexpr int kRechecks = 5;

// Seconds of a decode of n tokens.
using Probe = std::function<double(int n)>;

// Seconds of a decode of n tokens, on a GPU after others of as many: see WidthChange.
double settled(const Probe& probe, int n, bool on_gpu) {
    for (int i = 0; on_gpu && i < WidthChange::kUnsettled; ++i) probe(n);
    return probe(n);
}

// Seconds that a change of the number of tokens costs; 0 unless it is beyond doubt.
double change(const Probe& probe) {
    settled(probe, 1, true);
    std::array<double, 5> costs;
    double last = 0;
    int n = 1;
    for (double& cost : costs) {
        n = 3 - n;
        const double first = probe(n) + probe(n);
        last = probe(n);
        cost = first - WidthChange::kUnsettled * last;
    }
    std::ranges::nth_element(costs, costs.begin() + costs.size() / 2);
    const double median = costs[costs.size() / 2];
    return median > tuning::kBeyondDoubt * tuning::kTimingSd * last ? median : 0;
}

// Whether what an earlier session has learned of decodes of up to n_max tokens still holds.
bool still_holds(const Probe& probe, int n_max, bool on_gpu, const CostCurve& curve) {
    constexpr double kMost = tuning::kCalibrationSeconds / kRechecks;
    int n = std::min(n_max, CostCurve::kMaxTokens);
    while (n > 1 && (!curve.measured(n) || curve.seconds(n, 0) > kMost)) --n;
    if (n < 2 || !curve.measured(1)) return true;
    probe(1);
    const double one = std::min(probe(1), settled(probe, 1, on_gpu));
    const double many = std::min(probe(n), settled(probe, n, on_gpu));
    const double believed = curve.seconds(n, 0) / curve.seconds(1, 0);
    // A ratio further off than a timing may be is that of a machine that was busy, or had another
    // power plan.
    return std::abs(std::log(many / one / believed)) < tuning::kBeyondDoubt * tuning::kTimingSd;
}

// On a GPU kernels are also loaded, or compiled, when a decode first has n rows.
void measure(const Probe& probe, int n_max, bool on_gpu, CostCurve& curve) {
    double left = tuning::kCalibrationSeconds;
    probe(1);
    // The first n is 1, and is measured in any case: what it is expected to take is a guess at
    // first, and v(1) is always worth having.
    for (int n = 1; n > 0 && (n == 1 || curve.seconds(n, 0) <= left); n = curve.next_probe(n_max)) {
        const double seconds = settled(probe, n, on_gpu);
        curve.observe(n, 0, seconds);
        left -= on_gpu ? (1 + WidthChange::kUnsettled) * seconds : seconds;
    }
    if (on_gpu && n_max > 1) curve.change().set_seconds(change(probe));
}

}  // namespace

void calibrate(Context& context, int n_max, CostCurve& curve) {
    n_max = std::min({n_max, context.n_batch(), context.n_ctx()});
    Batch batch(context.n_batch());
    std::mt19937 random(kSeed);
    std::uniform_int_distribution<Token> token(0, context.model().vocab().size() - 1);
    const Probe probe = [&](int n) {
        batch.clear();
        // All logits are wanted, as in a verification.
        for (int i = 0; i < n; ++i) batch.add(token(random), i, kSequence, true);
        const Stopwatch watch;
        context.decode(batch);
        const double seconds = watch.seconds();
        context.memory().rewind(kSequence, 0);
        return seconds;
    };
    try {
        const bool on_gpu = context.model().kernels().empty();
        if (curve.measured() && still_holds(probe, n_max, on_gpu, curve)) return;
        curve = CostCurve();
        measure(probe, n_max, on_gpu, curve);
    } catch (const DecodeError&) {
        context.memory().rewind(kSequence, 0);
    }
}

}  // namespace specllama
