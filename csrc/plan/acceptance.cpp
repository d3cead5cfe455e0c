#include "plan/acceptance.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "clones.h"

namespace specllama {

std::size_t source_group(Source source) {
    if (source == Source::history) return 3;
    if (source == Source::grammar) return 2;
    return source == Source::model || source == Source::other ? 1 : 0;
}

namespace {

// Upper ends of the bins of a match's length, densest where the rate changes fastest.
constexpr std::array<int, 13> kMatchEnds = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64};

// P(next token right) by length of the match, measured on greedy text. Linear in between.
constexpr std::array<std::pair<double, double>, 8> kMatchPrior = {
    {{0, 0.15}, {1, 0.3}, {2, 0.5}, {3, 0.62}, {4, 0.7}, {8, 0.87}, {12, 0.92}, {16, 0.95}}};
// The same for a match in an earlier request that is longer than any in the request itself,
// measured on answers to questions with little in common.
constexpr std::array<std::pair<double, double>, 8> kHistoryPrior = {
    {{0, 0.03}, {1, 0.06}, {3, 0.13}, {4, 0.2}, {6, 0.48}, {9, 0.57}, {14, 0.65}, {32, 0.8}}};
// A match in a corpus is right as often as a match in the text itself that is shorter by this
// factor (measured on the standard library's modules, each with the others as the corpus).
constexpr double kCorpusDiscount = 2.5;
// The same for a match whose token had broken off a copy before (JSON records and edited code).
constexpr double kBrokenDiscount = 3;
// P(right) of an n-gram with frequency 1, by order from 2 on. Less than 1, since it may have been
// seen only once.
constexpr std::array<double, 7> kOrderPrior = {0.35, 0.55, 0.65, 0.72, 0.78, 0.82, 0.85};

// Upper ends of the bins of the number of forced bytes after a token. With none, the model may
// prefer a longer token that includes later text.
constexpr std::array<int, 5> kForcedEnds = {0, 2, 5, 10, 20};
constexpr std::array<double, 6> kForcedPrior = {0.4, 0.9, 0.95, 0.97, 0.98, 0.98};

double interpolated(const auto& curve, double length) {
    for (std::size_t i = 1; i < curve.size(); ++i) {
        const auto [from, low] = curve[i - 1];
        const auto [to, high] = curve[i];
        if (length <= to) return low + (high - low) * (length - from) / (to - from);
    }
    return curve.back().second;
}

double match_prior(double length) { return interpolated(kMatchPrior, length); }

double log_odds(double rate) { return std::log(rate / (1 - rate)); }

// [regime]: factor by which the regime changes the odds of being wrong.
const RegimeLanes kWrongOdds = [] {
    RegimeLanes factors{};
    for (int i = 0; i < kRegimes; ++i)
        factors[i] = static_cast<float>(std::exp(-tuning::kShifts[i]));
    return factors;
}();

std::size_t part(float fraction, std::size_t n_parts) {
    const float at = std::max(0.0F, fraction) * static_cast<float>(n_parts);  // of a NaN: 0
    return static_cast<std::size_t>(std::min(at, static_cast<float>(n_parts - 1)));
}

// Index of the bin of n. `ends` are the bins' upper ends; one more bin follows.
std::size_t interval(const auto& ends, int n) {
    return static_cast<std::size_t>(std::ranges::lower_bound(ends, n) - ends.begin());
}

// Sets the priors of equally wide bins to rates that rise linearly from low to high.
void believe(auto& bins, double low, double high) {
    const double step = (high - low) / static_cast<double>(bins.size());
    double rate = low + step / 2;
    for (auto& bin : bins) {
        bin.believe(rate);
        rate += step;
    }
}

}  // namespace

auto& Acceptance::bin_of(auto& table, const Evidence& evidence) {
    const int length = evidence.length;
    const float confidence = evidence.confidence;
    switch (evidence.source) {
        case Source::match:
            return (confidence > 0 ? table.match : table.broken)[interval(kMatchEnds, length)];
        case Source::corpus:
            return table.corpus[interval(kMatchEnds, length)];
        case Source::history:
            return table.history[interval(kMatchEnds, length)];
        case Source::ngram: {
            const int longest = static_cast<int>(table.ngram.size()) - 1;
            auto& bins = table.ngram[std::clamp(length - 2, 0, longest)];
            return bins[part(confidence, bins.size())];
        }
        case Source::grammar:
            if (confidence < 1) return table.by_history[part(confidence, table.by_history.size())];
            return table.forced[interval(kForcedEnds, length)];
        case Source::model:
            return table.model[part(confidence, table.model.size())];
        default:  // other, and sources without their own bins
            break;
    }
    return table.other[part(confidence, table.other.size())];
}

// A model's probability already accounts for its alternatives, so it is used unchanged.
auto& Acceptance::bin_of(auto& table, const TextRegime& regime, const Evidence& evidence,
                         int rank) {
    auto& own = bin_of(table, evidence);
    if (rank <= 0) return own;
    const double belief = evidence.source == Source::model
                              ? evidence.confidence
                              : own.rate(regime.weights[source_group(evidence.source)]);
    auto& by_rank = table.siblings[static_cast<std::size_t>(evidence.source)];
    auto& bins = by_rank[std::min<std::size_t>(rank, by_rank.size()) - 1];
    return bins[part(static_cast<float>(belief), bins.size())];
}

void Acceptance::Bin::believe(double rate) {
    prior = log_odds = specllama::log_odds(rate);
    set();
}

void Acceptance::Bin::set() {
    const float wrong_odds = std::exp(static_cast<float>(-log_odds));
    for (int i = 0; i < kRegimes; ++i) in_regime[i] = 1 / (1 + wrong_odds * kWrongOdds[i]);
}

// A natural-gradient step on the posterior of log_odds, averaged over the regimes.
void Acceptance::Bin::observe(const TextRegime::Weights& posterior, bool right) {
    double gradient = 0;
    double gained = 0;
    for (int i = 0; i < kRegimes; ++i) {
        gradient += posterior[i] * (static_cast<float>(right) - in_regime[i]);
        gained += posterior[i] * in_regime[i] * (1 - in_regime[i]);
    }
    constexpr double kKeep = 1 - 1 / tuning::kLongText;
    information = information * kKeep + gained;
    const double of_prior = tuning::kPrior * 0.25;
    gradient -= (1 - kKeep) * of_prior * (log_odds - prior);
    log_odds += gradient / (information + of_prior);
    set();
}

double Acceptance::Bin::rate(const TextRegime::Weights& weights) const {
    return std::inner_product(weights.begin(), weights.end(), in_regime.begin(), 0.0);
}

Acceptance::Acceptance() {
    Table& table = tables_[0];
    for (std::size_t i = 0; i < table.match.size(); ++i) {
        const double length = kMatchEnds[std::min(i, kMatchEnds.size() - 1)];
        table.match[i].believe(match_prior(length));
        table.broken[i].believe(match_prior(length / kBrokenDiscount));
        table.corpus[i].believe(match_prior(length / kCorpusDiscount));
        table.history[i].believe(interpolated(kHistoryPrior, length));
    }
    for (std::size_t i = 0; i < table.ngram.size(); ++i)
        believe(table.ngram[i], 0.3 * kOrderPrior[i], kOrderPrior[i]);
    for (std::size_t i = 0; i < table.forced.size(); ++i) table.forced[i].believe(kForcedPrior[i]);
    // Confidences of bytes follow Laplace's rule, which does not know about white space.
    believe(table.by_history, 0.3, 1);
    // Models are overconfident.
    believe(table.model, 0.1, 0.95);
    table.any_of_model.believe(0.7);
    // Nothing is known about other drafters, so their prior is low.
    believe(table.other, 0, 0.6);
    // Alternatives are right less often than expected: if the first candidate is wrong, the
    // position is hard to predict.
    for (auto& by_rank : table.siblings)
        for (std::size_t i = 0; i < by_rank.size(); ++i)
            believe(by_rank[i], 0, 0.5 / static_cast<double>(1 + i));
    table.met.fill(tuning::kShiftPrior);
    tables_.fill(table);
}

TextRegime Acceptance::begin(double temperature, int position) const {
    TextRegime regime;
    regime.temperature = temperature > 1 ? 3 : temperature > 0.5 ? 2 : temperature > 0 ? 1 : 0;
    for (std::size_t group = 0; group < kSourceGroups; ++group) {
        const TextRegime::Weights& met = tables_[regime.temperature].met[group];
        const double sum = std::accumulate(met.begin(), met.end(), 0.0);
        for (int i = 0; i < kRegimes; ++i) regime.next[group][i] = met[i] / sum;
    }
    regime.n_met.fill(tuning::kPrior);
    regime.weights = regime.next;
    regime.position.fill(position);
    return regime;
}

void Acceptance::pass(TextRegime& regime, std::size_t group, int position) {
    const int n_tokens = position - regime.position[group];
    if (n_tokens <= 0) return;
    regime.position[group] = position;
    constexpr double kLast = 1 - tuning::kRegimeEnd;
    const double lasts = n_tokens == 1 ? kLast : std::pow(kLast, n_tokens);
    const TextRegime::Weights& next = regime.next[group];
    TextRegime::Weights& weights = regime.weights[group];
    for (int i = 0; i < kRegimes; ++i) weights[i] = lasts * weights[i] + (1 - lasts) * next[i];
}

double Acceptance::rate(const TextRegime& regime, const Evidence& evidence, int rank) const {
    return bin_of(tables_[regime.temperature], regime, evidence, rank)
        .rate(regime.weights[source_group(evidence.source)]);
}

void Acceptance::observe_sibling(const TextRegime& regime, const Evidence& evidence, int rank,
                                 bool right) {
    bin_of(tables_[regime.temperature], regime, evidence, rank)
        .observe(regime.weights[source_group(evidence.source)], right);
}

void Acceptance::for_each_of_model(auto& tables, auto visit) {
    for (auto& table : tables) {
        for (auto& bin : table.model) visit(bin);
        visit(table.any_of_model);
    }
}

std::vector<double> Acceptance::model_rates() const {
    std::vector<double> numbers;
    for_each_of_model(tables_, [&](const Bin& bin) {
        numbers.insert(numbers.end(), {bin.log_odds, bin.information});
    });
    return numbers;
}

void Acceptance::restore_model_rates(std::span<const double> numbers) {
    if (numbers.size() != model_rates().size()) return;
    // No rate comes near these odds, and each of the observations that count has less than 1/4.
    constexpr double kMostLogOdds = 20;
    for (std::size_t i = 0; i < numbers.size(); i += 2)
        if (!(std::abs(numbers[i]) < kMostLogOdds && numbers[i + 1] >= 0 &&
              numbers[i + 1] < tuning::kLongText))
            return;
    for_each_of_model(tables_, [at = numbers.begin()](Bin& bin) mutable {
        bin.log_odds = *at++;
        bin.information = *at++;
        bin.set();
    });
}

SPECLLAMA_CLONES("avx2")
void Acceptance::observe(TextRegime& regime, int position, std::span<const Evidence> draft,
                         int n_right, int n_judged) {
    Table& table = tables_[regime.temperature];
    const int n = std::min({n_right + 1, n_judged, static_cast<int>(draft.size())});
    for (int j = 0; j < n; ++j) {
        const bool right = j < n_right;
        const std::size_t group = source_group(draft[j].source);
        pass(regime, group, position + j);
        TextRegime::Weights& weights = regime.weights[group];
        Bin& own = bin_of(table, draft[j]);
        double sum = 0;
        for (int i = 0; i < kRegimes; ++i) {
            const double p = own.in_regime[i];
            weights[i] *= right ? p : 1 - p;
            sum += weights[i];
        }
        for (double& weight : weights) weight /= sum;
        own.observe(weights, right);
        if (draft[j].source == Source::model) table.any_of_model.observe(weights, right);
        // Older tokens of all requests decay towards the prior.
        TextRegime::Weights& met = table.met[group];
        TextRegime::Weights& next = regime.next[group];
        const double n_met = ++regime.n_met[group];
        for (int i = 0; i < kRegimes; ++i) {
            met[i] += weights[i] - (met[i] - tuning::kShiftPrior[i]) / tuning::kShiftWindow;
            next[i] += (weights[i] - next[i]) / n_met;
        }
    }
}

SPECLLAMA_CLONES("avx2")
int Acceptance::predict(const TextRegime& regime, int position, std::span<const Evidence> draft,
                        double risk_exponent, TextRegime::Weights& regimes,
                        std::span<RegimeLanes> tokens) const {
    const Table& table = tables_[regime.temperature];
    TextRegime then = regime;
    const std::size_t first = source_group(draft.empty() ? Source::model : draft[0].source);
    pass(then, first, position - 1);
    // survival[t][s]: probability that all tokens so far are right and the regime is now t, if it
    // was s at first. alive[s]: its sum over t. With s innermost and in single precision, one
    // vector operation handles all s.
    std::array<RegimeVector, kRegimes> survival{};
    for (int s = 0; s < kRegimes; ++s) survival[s][s] = 1;
    RegimeVector alive = RegimeVector{} + 1.0F;
    RegimeVector expected = alive;
    RegimeVector weights{};
    std::array<float, kRegimes> begins;
    for (int s = 0; s < kRegimes; ++s) {
        weights[s] = static_cast<float>(then.weights[first][s]);
        begins[s] = static_cast<float>(tuning::kRegimeEnd * then.next[first][s]);
    }
    constexpr auto kLasts = static_cast<float>(1 - tuning::kRegimeEnd);
    tokens[0] = std::bit_cast<RegimeLanes>(expected);
    std::size_t length = tokens.size() - 1;
    for (std::size_t g = 1; g <= length; ++g) {
        const bool known = g <= draft.size();
        const std::size_t group = source_group(known ? draft[g - 1].source : Source::model);
        const Bin& bin = known ? bin_of(table, draft[g - 1]) : table.any_of_model;
        const RegimeLanes& rates = bin.in_regime;
        std::array<RegimeVector, 2> sums{};  // two, for a shorter chain of dependent additions
        if (group == first) {
            for (int t = 0; t < kRegimes; ++t)
                sums[t % 2] += survival[t] = rates[t] * (kLasts * survival[t] + begins[t] * alive);
        } else {
            // A token of another group depends on that group's regime, not on the regime of the
            // first group.
            pass(then, group, position + static_cast<int>(g) - 1);
            double rate = 0;
            for (int t = 0; t < kRegimes; ++t) rate += then.weights[group][t] *= rates[t];
            for (double& weight : then.weights[group]) weight /= rate;
            for (RegimeVector& row : survival) sums[0] += row *= static_cast<float>(rate);
        }
        alive = sums[0] + sums[1];
        RegimeVector counts = alive;
        weaken(counts, risk_exponent);
        expected += counts;
        tokens[g] = std::bit_cast<RegimeLanes>(expected);
        if (sum(weights * counts) < tuning::kNegligible) length = g;
    }
    regimes = then.weights[first];
    return static_cast<int>(length);
}

}  // namespace specllama
