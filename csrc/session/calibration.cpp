#include "session/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "plan/constants.h"
#include "runtime/batch.h"
#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

// Most tokens of a text after which costs are measured.
constexpr int kShortText = 512;

// Fixed, so that two runs measure the same.
constexpr unsigned kSeed = 1;

// Number of decodes in still_holds().
constexpr int kRechecks = 5;

// Seconds of a decode of n tokens.
using Probe = std::function<double(int n)>;

// Decodes of n tokens before the first one whose time is representative. A GPU loads or compiles
// kernels when a decode first has n tokens; see also WidthSwitch.
int n_unsettled(bool on_gpu, const CostCurve& curve) {
    if (!on_gpu) return 0;
    return curve.width_switch().seconds() > 0 ? WidthSwitch::kUnsteady : 1;
}

// Seconds of a decode of n tokens after n_others others.
double after(int n_others, const Probe& probe, int n) {
    for (int i = 0; i < n_others; ++i) probe(n);
    return probe(n);
}

// Seconds that a change of the number of tokens costs; 0 unless this is certain.
double width_switch_cost(const Probe& probe) {
    for (const int n : {1, 2}) after(WidthSwitch::kUnsteady, probe, n);
    double least = std::numeric_limits<double>::infinity();
    double plain = 0;
    for (const int n : {1, 2}) {
        const double unsettled = probe(n) + probe(n);
        plain = probe(n);
        least = std::min(least, unsettled - WidthSwitch::kUnsteady * plain);
    }
    return least > tuning::kBeyondDoubt * tuning::kTimingSd * plain ? least : 0;
}

// The place after the shortest text in the memory.
struct Place {
    SequenceId sequence = 0;
    int n_tokens = 0;
};

Place shortest(Context& context) {
    const auto place = [&](SequenceId sequence) {
        return Place{sequence, context.memory().rewindable(sequence, Memory::kAnyNumber)};
    };
    Place best = place(0);
    for (int i = 1; i < context.n_seq(); ++i)
        if (const Place one = place(i); one.n_tokens < best.n_tokens) best = one;
    return best;
}

// Whether the curve of an earlier session still holds for decodes of up to n_max tokens after
// n_context others.
bool still_holds(const Probe& probe, int n_max, int n_context, bool on_gpu,
                 const CostCurve& curve) {
    constexpr double kMost = tuning::kCalibrationSeconds / kRechecks;
    int n = std::min(n_max, CostCurve::kMaxTokens);
    while (n > 1 && (!curve.measured(n) || curve.seconds(n, n_context) > kMost)) --n;
    if (n < 2 || !curve.measured(1)) return true;
    const int n_others = n_unsettled(on_gpu, curve);
    probe(1);
    const double one = std::min(probe(1), after(n_others, probe, 1));
    const double many = std::min(probe(n), after(n_others, probe, n));
    const double believed = curve.seconds(n, n_context) / curve.seconds(1, n_context);
    // A ratio outside the error of a timing was learned on a busy machine or with another power
    // plan.
    return std::abs(std::log(many / one / believed)) < tuning::kBeyondDoubt * tuning::kTimingSd;
}

void measure(const Probe& probe, int n_max, int n_context, bool on_gpu, CostCurve& curve) {
    double left = tuning::kCalibrationSeconds;
    probe(1);
    if (on_gpu && n_max > 1) curve.width_switch().set_seconds(width_switch_cost(probe));
    // The first n is 1. It is always measured: its expected time is only a guess at first, and v(1)
    // is always needed.
    for (int n = 1; n > 0 && (n == 1 || curve.seconds(n, n_context) <= left);
         n = curve.next_probe(n_max)) {
        const int n_others = n_unsettled(on_gpu, curve);
        const double seconds = after(n_others, probe, n);
        for (int i = 0; i < n_others; ++i) curve.width_switch().note(n);
        curve.observe(n, n_context, seconds);
        left -= seconds;
    }
}

}  // namespace

bool calibrate(Context& context, int n_max, bool is_kept, CostCurve& curve) {
    const Place place = shortest(context);
    const int most = context.memory().needs_checkpoints() ? 0 : kShortText;
    n_max = std::min({n_max, context.n_batch(), context.n_ctx() - place.n_tokens});
    if (n_max < 1 || place.n_tokens > most) return false;
    Batch batch(context.n_batch());
    std::mt19937 random(kSeed);
    std::uniform_int_distribution<Token> token(0, context.model().vocab().size() - 1);
    const Probe probe = [&](int n) {
        batch.clear();
        // All logits are requested, as in a verification.
        for (int i = 0; i < n; ++i)
            batch.add(token(random), place.n_tokens + i, place.sequence, true);
        const Stopwatch watch;
        context.decode(batch);
        const double seconds = watch.seconds();
        context.memory().rewind(place.sequence, place.n_tokens);
        return seconds;
    };
    try {
        const bool on_gpu = context.model().kernels().empty();
        if (is_kept && still_holds(probe, n_max, place.n_tokens, on_gpu, curve)) return true;
        curve = CostCurve();
        measure(probe, n_max, place.n_tokens, on_gpu, curve);
    } catch (const DecodeError&) {
        context.memory().rewind(place.sequence, place.n_tokens);
    }
    return true;
}

}  // namespace specllama
