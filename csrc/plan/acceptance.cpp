#include "plan/acceptance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specllama {

namespace {

// Upper ends of the bins of a match's length. What a match is worth changes fastest where it is
// short.
constexpr std::array<int, 13> kMatchEnds = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64};

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
// Of an n-gram with frequency 1, by order from 2 on: its one sight may be the only one.
constexpr std::array<double, 7> kOrderPrior = {0.35, 0.55, 0.65, 0.72, 0.78, 0.82, 0.85};

double match_prior(double length) {
    for (std::size_t i = 1; i < kMatchPrior.size(); ++i) {
        const auto [from, low] = kMatchPrior[i - 1];
        const auto [to, high] = kMatchPrior[i];
        if (length <= to) return low + (high - low) * (length - from) / (to - from);
    }
    return kMatchPrior.back().rate;
}

double log_odds(double rate) { return std::log(rate / (1 - rate)); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

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
            return (evidence.source == Source::match ? kMatch : kCorpus) +
                   static_cast<std::size_t>(std::ranges::lower_bound(kMatchEnds, evidence.length) -
                                            kMatchEnds.begin());
        case Source::ngram:
            return kNGram +
                   static_cast<std::size_t>(
                       std::clamp(evidence.length - 2, 0, static_cast<int>(kOrders) - 1)) *
                       kFrequencyBins +
                   part(evidence.confidence, kFrequencyBins);
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
        return match_prior(bin < kCorpus ? length : length / kCorpusDiscount);
    }
    if (bin < kModel) {
        const std::size_t at = bin - kNGram;
        return kOrderPrior[at / kFrequencyBins] *
               (0.3 + 0.7 * middle(at % kFrequencyBins, kFrequencyBins));
    }
    // A model's probability errs towards certainty.
    if (bin < kOther) return 0.1 + 0.85 * middle(bin - kModel, kModelBins);
    // Of what is not known nothing is believed at once.
    return 0.6 * middle(bin - kOther, kOtherBins);
}

void Acceptance::Bin::set() {
    const double rate = (right + tuning::kRatePrior * prior) / (judged + tuning::kRatePrior);
    for (int i = 0; i < kPhases; ++i) in_phase[i] = logistic(log_odds(rate) + tuning::kShifts[i]);
}

Acceptance::Acceptance() {
    Table& table = tables_[0];
    for (std::size_t i = 0; i < kBins; ++i) {
        table.bins[i].prior = prior_of(i);
        table.bins[i].set();
    }
    const double sum = std::accumulate(tuning::kShiftPrior.begin(), tuning::kShiftPrior.end(), 0.0);
    for (std::size_t source = 0; source < kSources; ++source)
        for (int i = 0; i < kPhases; ++i) {
            table.met[source][i] = 0;
            table.share[source][i] = tuning::kShiftPrior[i] / sum;
        }
    tables_.fill(table);
}

Phase Acceptance::begin(double temperature, int position) const {
    Phase phase;
    phase.temperature = static_cast<int>(temperature_class(temperature));
    phase.weights = tables_[phase.temperature].share;
    phase.position.fill(position);
    return phase;
}

void Acceptance::pass(Phase& phase, std::size_t source, int position) const {
    const int n_tokens = position - phase.position[source];
    if (n_tokens <= 0) return;
    phase.position[source] = position;
    constexpr double kLast = 1 - tuning::kPhaseEnd;
    const double lasts = n_tokens == 1 ? kLast : std::pow(kLast, n_tokens);
    const Phase::Weights& share = tables_[phase.temperature].share[source];
    Phase::Weights& weights = phase.weights[source];
    for (int i = 0; i < kPhases; ++i) weights[i] = lasts * weights[i] + (1 - lasts) * share[i];
}

void Acceptance::observe(Phase& phase, int position, std::span<const Evidence> draft, int n_right,
                         int n_judged) {
    Table& table = tables_[phase.temperature];
    const int n = std::min({n_right + 1, n_judged, static_cast<int>(draft.size())});
    for (int j = 0; j < n; ++j) {
        const bool right = j < n_right;
        const auto source = static_cast<std::size_t>(draft[j].source);
        pass(phase, source, position + j);
        Phase::Weights& weights = phase.weights[source];
        const std::size_t own = bin_of(draft[j]);
        double sum = 0;
        for (int i = 0; i < kPhases; ++i) {
            const double p = table.bins[own].in_phase[i];
            weights[i] *= right ? p : 1 - p;
            sum += weights[i];
        }
        Phase::Weights& met = table.met[source];
        double all = 0;
        for (int i = 0; i < kPhases; ++i) {
            weights[i] /= sum;
            met[i] = met[i] * (1 - 1 / tuning::kShiftWindow) + weights[i];
            all += met[i] + tuning::kShiftPrior[i];
        }
        for (int i = 0; i < kPhases; ++i)
            table.share[source][i] = (met[i] + tuning::kShiftPrior[i]) / all;
        for (const std::size_t at : {own, source}) {
            Bin& bin = table.bins[at];
            bin.right = bin.right * (1 - 1 / tuning::kRateWindow) + right;
            bin.judged = bin.judged * (1 - 1 / tuning::kRateWindow) + 1;
            bin.set();
        }
    }
}

Acceptance::Forecast::Forecast(const Acceptance& acceptance, const Phase& phase, int position,
                               Source first)
    : acceptance_(acceptance),
      phase_(phase),
      first_(static_cast<std::size_t>(first)),
      position_(position) {
    acceptance_.pass(phase_, first_, position - 1);
    for (int s = 0; s < kPhases; ++s) survival_[s][s] = 1;
    tokens_.fill(1);
}

void Acceptance::Forecast::add(Source source, std::size_t bin) {
    const auto at = static_cast<std::size_t>(source);
    const Table& table = acceptance_.tables_[phase_.temperature];
    const Phase::Weights& rates = table.bins[bin].in_phase;
    const int position = position_++;
    if (at == first_) {
        const Phase::Weights& share = table.share[at];
        for (int s = 0; s < kPhases; ++s) {
            Phase::Weights& row = survival_[s];
            const double ends = tuning::kPhaseEnd * std::accumulate(row.begin(), row.end(), 0.0);
            for (int t = 0; t < kPhases; ++t) {
                row[t] = ((1 - tuning::kPhaseEnd) * row[t] + ends * share[t]) * rates[t];
                tokens_[s] += row[t];
            }
        }
        return;
    }
    // Another source's phase is its own matter: its token is right by the same chance whatever the
    // first source's phase.
    acceptance_.pass(phase_, at, position);
    double rate = 0;
    for (int t = 0; t < kPhases; ++t) rate += phase_.weights[at][t] *= rates[t];
    for (double& weight : phase_.weights[at]) weight /= rate;
    for (int s = 0; s < kPhases; ++s)
        for (double& survival : survival_[s]) tokens_[s] += survival *= rate;
}

}  // namespace specllama
