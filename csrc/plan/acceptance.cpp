#include "plan/acceptance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "clones.h"

namespace specllama {

std::size_t view_of(Source source) {
    if (source == Source::grammar) return 2;
    return source == Source::model || source == Source::other ? 1 : 0;
}

namespace {

// Upper ends of the bins of a match's length. What a match is worth changes fastest where it is
// short.
constexpr std::array<int, 13> kMatchEnds = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64};

// [length]: its bin, from 0 to one more than the last end.
constexpr auto kMatchBin = [] {
    std::array<unsigned char, kMatchEnds.back() + 2> bins{};
    for (int length = 0; length < std::ssize(bins); ++length)
        for (const int end : kMatchEnds)
            if (end < length) ++bins[length];
    return bins;
}();

struct Point {
    double length;
    double rate;
};
// P(next token right) by length of the match, seen on greedy text; linear in between.
constexpr std::array<Point, 8> kMatchPrior = {
    {{0, 0.15}, {1, 0.3}, {2, 0.5}, {3, 0.62}, {4, 0.7}, {8, 0.87}, {12, 0.92}, {16, 0.95}}};
// A match in a corpus is right as often as one in the text itself that is so much shorter (seen on
// the standard library's modules, each with the others as the corpus).
constexpr double kCorpusDiscount = 2.5;
// And so is one whose token had broken off a copy before (seen on JSON records and edited code).
constexpr double kBrokenDiscount = 3;
// Of an n-gram with frequency 1, by order from 2 on: its one sight may be the only one.
constexpr std::array<double, 7> kOrderPrior = {0.35, 0.55, 0.65, 0.72, 0.78, 0.82, 0.85};

// Upper ends of the bins of the bytes that are forced behind a token. The last token of a run may
// become another one with what follows it.
constexpr std::array<int, 5> kForcedEnds = {0, 2, 5, 10, 20};
constexpr std::array<double, 6> kForcedPrior = {0.4, 0.9, 0.95, 0.97, 0.98, 0.98};

double match_prior(double length) {
    for (std::size_t i = 1; i < kMatchPrior.size(); ++i) {
        const auto [from, low] = kMatchPrior[i - 1];
        const auto [to, high] = kMatchPrior[i];
        if (length <= to) return low + (high - low) * (length - from) / (to - from);
    }
    return kMatchPrior.back().rate;
}

double log_odds(double rate) { return std::log(rate / (1 - rate)); }

// [phase]: the factor by which it changes the odds of being wrong.
const PhaseLanes kWrongOdds = [] {
    PhaseLanes factors{};
    for (int i = 0; i < kPhases; ++i)
        factors[i] = static_cast<float>(std::exp(-tuning::kShifts[i]));
    return factors;
}();

// Counts a token, whose phase is known so far, and forgets older ones for their prior.
void count(Phase::Weights& met, const Phase::Weights& phase) {
    for (int i = 0; i < kPhases; ++i)
        met[i] += phase[i] - (met[i] - tuning::kShiftPrior[i]) / tuning::kShiftWindow;
}

std::size_t part(float fraction, std::size_t n_parts) {
    if (!(fraction > 0)) return 0;  // a NaN, too
    const auto at =
        static_cast<std::size_t>(std::min(fraction, 1.0F) * static_cast<float>(n_parts));
    return std::min(at, n_parts - 1);
}
double middle(std::size_t at, std::size_t n_parts) {
    return (static_cast<double>(at) + 0.5) / static_cast<double>(n_parts);
}

std::size_t temperature_class(double temperature) {
    if (!(temperature > 0)) return 0;
    return temperature <= 0.5 ? 1 : temperature <= 1 ? 2 : 3;
}

}  // namespace

std::size_t Acceptance::bin_of(const Evidence& evidence) {
    switch (evidence.source) {
        case Source::match:
        case Source::corpus:
            return (evidence.source == Source::corpus ? kCorpus
                    : evidence.confidence > 0         ? kMatch
                                                      : kBroken) +
                   kMatchBin[std::clamp(evidence.length, 0, kMatchEnds.back() + 1)];
        case Source::ngram:
            return kNGram +
                   static_cast<std::size_t>(
                       std::clamp(evidence.length - 2, 0, static_cast<int>(kOrders) - 1)) *
                       kFrequencyBins +
                   part(evidence.confidence, kFrequencyBins);
        case Source::grammar:
            if (evidence.confidence < 1) return kHabit + part(evidence.confidence, kHabitBins);
            return kForced +
                   static_cast<std::size_t>(std::ranges::lower_bound(kForcedEnds, evidence.length) -
                                            kForcedEnds.begin());
        case Source::model:
            return kModel + part(evidence.confidence, kModelBins);
        case Source::other:
            break;
    }
    return kOther + part(evidence.confidence, kOtherBins);
}

double Acceptance::prior_of(std::size_t bin) {
    if (bin < kMatch) return bin == static_cast<std::size_t>(Source::model) ? 0.7 : 0.6;
    if (bin < kNGram) {
        const std::size_t at = (bin - kMatch) % kMatchBins;
        const double length = at < kMatchEnds.size() ? kMatchEnds[at] : kMatchEnds.back();
        return match_prior(length / (bin < kBroken   ? 1
                                     : bin < kCorpus ? kBrokenDiscount
                                                     : kCorpusDiscount));
    }
    if (bin < kForced) {
        const std::size_t at = bin - kNGram;
        return kOrderPrior[at / kFrequencyBins] *
               (0.3 + 0.7 * middle(at % kFrequencyBins, kFrequencyBins));
    }
    if (bin < kHabit) return kForcedPrior[bin - kForced];
    // By Laplace's rule, which knows nothing of white space.
    if (bin < kModel) return 0.3 + 0.7 * middle(bin - kHabit, kHabitBins);
    // A model's probability errs towards certainty.
    if (bin < kOther) return 0.1 + 0.85 * middle(bin - kModel, kModelBins);
    // Of what is not known nothing is believed at once.
    if (bin < kSibling) return 0.6 * middle(bin - kOther, kOtherBins);
    // Where the first guess is wrong, that tells of a hard place.
    const std::size_t at = bin - kSibling;
    return 0.5 * middle(at % kBeliefBins, kBeliefBins) /
           static_cast<double>(1 + at / kBeliefBins % kRanks);
}

void Acceptance::Bin::set() {
    const float wrong_odds = std::exp(static_cast<float>(-log_odds));
    for (int i = 0; i < kPhases; ++i) in_phase[i] = 1 / (1 + wrong_odds * kWrongOdds[i]);
}

// A step of natural gradient up the posterior of the log-odds, with the phase as it is known.
void Acceptance::Bin::observe(const Phase::Weights& posterior, bool right) {
    double gradient = 0;
    double gained = 0;
    for (int i = 0; i < kPhases; ++i) {
        gradient += posterior[i] * (right - in_phase[i]);
        gained += posterior[i] * in_phase[i] * (1 - in_phase[i]);
    }
    constexpr double kKeep = 1 - 1 / tuning::kLongText;
    information = information * kKeep + gained;
    const double of_prior = tuning::kPrior * 0.25;
    gradient -= (1 - kKeep) * of_prior * (log_odds - prior);
    log_odds += gradient / (information + of_prior);
    set();
}

Acceptance::Acceptance() {
    Table& table = tables_[0];
    for (std::size_t i = 0; i < kBins; ++i) {
        table.bins[i].prior = table.bins[i].log_odds = log_odds(prior_of(i));
        table.bins[i].set();
    }
    table.met.fill(tuning::kShiftPrior);
    tables_.fill(table);
}

Phase Acceptance::begin(double temperature, int position) const {
    Phase phase;
    phase.temperature = static_cast<int>(temperature_class(temperature));
    for (std::size_t view = 0; view < kViews; ++view) {
        const Phase::Weights& met = tables_[phase.temperature].met[view];
        const double sum = std::accumulate(met.begin(), met.end(), 0.0);
        for (int i = 0; i < kPhases; ++i) {
            phase.next[view][i] = met[i] / sum;
            phase.met[view][i] = tuning::kPrior * phase.next[view][i];
        }
    }
    phase.weights = phase.next;
    phase.position.fill(position);
    return phase;
}

void Acceptance::pass(Phase& phase, std::size_t view, int position) {
    const int n_tokens = position - phase.position[view];
    if (n_tokens <= 0) return;
    phase.position[view] = position;
    constexpr double kLast = 1 - tuning::kPhaseEnd;
    const double lasts = n_tokens == 1 ? kLast : std::pow(kLast, n_tokens);
    const Phase::Weights& next = phase.next[view];
    Phase::Weights& weights = phase.weights[view];
    for (int i = 0; i < kPhases; ++i) weights[i] = lasts * weights[i] + (1 - lasts) * next[i];
}

double Acceptance::rate(const Phase& phase, const Evidence& evidence, int rank) const {
    const std::size_t bin = rank > 0 ? sibling_bin(phase, evidence, rank) : bin_of(evidence);
    const Phase::Weights& weights = phase.weights[view_of(evidence.source)];
    const PhaseLanes& rates = tables_[phase.temperature].bins[bin].in_phase;
    return std::inner_product(weights.begin(), weights.end(), rates.begin(), 0.0);
}

// What a model says of a guess beside others it says in the knowledge of these.
std::size_t Acceptance::sibling_bin(const Phase& phase, const Evidence& evidence, int rank) const {
    const bool knows = evidence.source == Source::model;
    const auto belief = knows ? evidence.confidence : static_cast<float>(rate(phase, evidence));
    const auto n_before = std::clamp<std::size_t>(rank, 1, kRanks) - 1;
    return kSibling +
           (static_cast<std::size_t>(evidence.source) * kRanks + n_before) * kBeliefBins +
           part(belief, kBeliefBins);
}

void Acceptance::observe_sibling(const Phase& phase, const Evidence& evidence, int rank,
                                 bool right) {
    tables_[phase.temperature].bins[sibling_bin(phase, evidence, rank)].observe(
        phase.weights[view_of(evidence.source)], right);
}

SPECLLAMA_CLONES("avx2")
void Acceptance::observe(Phase& phase, int position, std::span<const Evidence> draft, int n_right,
                         int n_judged) {
    Table& table = tables_[phase.temperature];
    const int n = std::min({n_right + 1, n_judged, static_cast<int>(draft.size())});
    for (int j = 0; j < n; ++j) {
        const bool right = j < n_right;
        const std::size_t view = view_of(draft[j].source);
        pass(phase, view, position + j);
        Phase::Weights& weights = phase.weights[view];
        const std::size_t own = bin_of(draft[j]);
        double sum = 0;
        for (int i = 0; i < kPhases; ++i) {
            const double p = table.bins[own].in_phase[i];
            weights[i] *= right ? p : 1 - p;
            sum += weights[i];
        }
        for (double& weight : weights) weight /= sum;
        for (const std::size_t at : {own, static_cast<std::size_t>(draft[j].source)})
            table.bins[at].observe(weights, right);
        count(table.met[view], weights);
        Phase::Weights& met = phase.met[view];
        double all = 0;
        for (int i = 0; i < kPhases; ++i) all += met[i] += weights[i];
        for (int i = 0; i < kPhases; ++i) phase.next[view][i] = met[i] / all;
    }
}

SPECLLAMA_CLONES("avx2")
Acceptance::Prospect Acceptance::foresee(const Phase& phase, int position,
                                         std::span<const Evidence> draft, Caution caution,
                                         std::span<PhaseLanes> tokens) const {
    const Table& table = tables_[phase.temperature];
    Phase then = phase;
    const std::size_t first = view_of(draft.empty() ? Source::model : draft[0].source);
    pass(then, first, position - 1);
    // [t][s]: probability that all tokens so far are right and the phase is t now, if it was s; and
    // [s]: the sum over all t. In this order, and in single precision, all sums run over all s at
    // once.
    std::array<PhaseVector, kPhases> survival{};
    for (int s = 0; s < kPhases; ++s) survival[s][s] = 1;
    PhaseVector alive = PhaseVector{} + 1.0F;
    PhaseVector expected = alive;
    PhaseVector weights{};
    std::array<float, kPhases> begins;
    for (int s = 0; s < kPhases; ++s) {
        weights[s] = static_cast<float>(then.weights[first][s]);
        begins[s] = static_cast<float>(tuning::kPhaseEnd * then.next[first][s]);
    }
    constexpr auto kLasts = static_cast<float>(1 - tuning::kPhaseEnd);
    tokens[0] = std::bit_cast<PhaseLanes>(expected);
    std::size_t length = tokens.size() - 1;
    for (std::size_t g = 1; g <= length; ++g) {
        const bool known = g <= draft.size();
        const std::size_t view = view_of(known ? draft[g - 1].source : Source::model);
        const PhaseLanes& rates =
            table.bins[known ? bin_of(draft[g - 1]) : static_cast<std::size_t>(Source::model)]
                .in_phase;
        std::array<PhaseVector, 2> sums{};  // two, so that none waits for all before it
        if (view == first) {
            for (int t = 0; t < kPhases; ++t)
                sums[t % 2] += survival[t] = rates[t] * (kLasts * survival[t] + begins[t] * alive);
        } else {
            // Another view's phase is its own matter: its token is right by the same chance
            // whatever the phase in the first view.
            pass(then, view, position + static_cast<int>(g) - 1);
            double rate = 0;
            for (int t = 0; t < kPhases; ++t) rate += then.weights[view][t] *= rates[t];
            for (double& weight : then.weights[view]) weight /= rate;
            for (PhaseVector& row : survival) sums[0] += row *= static_cast<float>(rate);
        }
        alive = sums[0] + sums[1];
        PhaseVector counts = alive;
        caution.weaken(counts);
        expected += counts;
        tokens[g] = std::bit_cast<PhaseLanes>(expected);
        if (sum(weights * counts) < tuning::kNegligible) length = g;
    }
    return {then.weights[first], static_cast<int>(length)};
}

}  // namespace specllama
