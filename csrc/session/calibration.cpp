#include "session/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "plan/constants.h"
#include "runtime/batch.h"
#include "specllama/error.h"
#include "system/clock.h"

namespace specllama {

namespace {

// Most tokens of texts after which costs are measured. Reading more takes over ten times as long as
// checking a kept curve, and decodes after them would include the cost of that context.
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

// Widths come in the order of CostCurve::next_probe.
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

// is_kept: the curve is of an earlier session.
void calibrate(Context& context, int n_max, bool is_kept, CostCurve& curve) {
    const Place place = shortest(context);
    n_max = std::min({n_max, context.n_batch(), context.n_ctx() - place.n_tokens});
    const bool is_possible = place.n_tokens == 0 || !context.memory().needs_checkpoints();
    if (n_max < 1 || !is_possible) return;
    Batch batch(context.n_batch());
    std::mt19937 random(kSeed);
    std::uniform_int_distribution<Token> token(0, context.model().vocab().size() - 1);
    const auto cut = [&] { context.memory().rewind(place.sequence, place.n_tokens); };
    const Probe probe = [&](int n) {
        batch.clear();
        // All logits are requested, as in a verification.
        for (int i = 0; i < n; ++i)
            batch.add(token(random), place.n_tokens + i, place.sequence, true);
        const Stopwatch watch;
        context.decode(batch);
        const double seconds = watch.seconds();
        cut();
        return seconds;
    };
    try {
        const bool on_gpu = context.model().kernels().empty();
        if (is_kept && still_holds(probe, n_max, place.n_tokens, on_gpu, curve)) {
            curve.width_switch().note(0);  // the next decode counts as a change of width
            return;
        }
        curve = CostCurve();
        measure(probe, n_max, place.n_tokens, on_gpu, curve);
    } catch (const DecodeError&) {
        cut();
    } catch (...) {
        cut();
        throw;
    }
}

}  // namespace

Calibration::Calibration(Context* target, int n_logits, std::shared_ptr<ModelDrafter> draft_model,
                         int longest, Speculator& speculator)
    : target_(target),
      n_logits_(n_logits),
      draft_model_(std::move(draft_model)),
      longest_(longest),
      speculator_(&speculator) {
    const std::vector<CostCurve*> curves = speculator.curves();
    done_ = curves.empty();
    if (done_) return;
    target_is_kept_ = curves.front()->measured();
    if (Planner* const planner = speculator.planner())
        draft_is_kept_ = planner->draft_cost().curves().now().measured();
}

bool Calibration::due(std::span<Sequence* const> sequences) const {
    if (done_) return false;
    int n_tokens = 0;
    for (const Sequence* sequence : sequences) n_tokens += sequence->n_tokens();
    const int n_room = target_ != nullptr ? target_->n_ctx() - n_logits_ : kShortText;
    return n_tokens > std::min(kShortText, n_room) ||
           !std::ranges::all_of(sequences, &Sequence::in_prompt);
}

bool Calibration::run() {
    if (std::exchange(done_, true)) return false;
    Planner* const planner = speculator_->planner();
    if (target_ != nullptr) {
        target_->adapt_threads();
        if (planner != nullptr) planner->set_threads(target_->n_threads());
        CostCurve& cost = planner != nullptr ? planner->cost() : *speculator_->curves().front();
        calibrate(*target_, n_logits_, target_is_kept_, cost);
        const Memory& memory = target_->memory();
        cost.width_switch().set_padding(!memory.per_sequence_streams() &&
                                        memory.n_cuttable() == Memory::kAnyNumber);
    }
    if (planner != nullptr && draft_model_ != nullptr) {
        draft_model_->context().adapt_threads();
        CostCurve& cost = planner->draft_cost().curves().now();
        calibrate(draft_model_->context(), longest_, draft_is_kept_, cost);
        // It decodes one token at a time in nearly all cases.
        cost.width_switch().set_seconds(0);
    }
    return true;
}

}  // namespace specllama
