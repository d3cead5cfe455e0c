#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/constants.h"
#include "specllama/evidence.h"

namespace specllama {

// Drafters form four groups: those that copy from the text (or a corpus), those that copy from
// earlier requests, those that follow the grammar, and those that predict like a model. Each group
// of a request has its own regime, since all sources of a group are good or bad at the same time.
inline constexpr int kSourceGroups = 4;
std::size_t source_group(Source source);

inline constexpr int kRegimes = static_cast<int>(tuning::kShifts.size());

// A number for each regime, padded to the lanes of a vector unit. The padding is never read.
using RegimeLanes = std::array<float, 8>;
static_assert(kRegimes <= std::tuple_size_v<RegimeLanes>);
// The same as a vector type for arithmetic, since compilers do not vectorise these loops over
// arrays. Its layout depends on the processor, so it is neither stored nor passed by value.
using RegimeVector __attribute__((vector_size(sizeof(RegimeLanes)))) = float;

// In pairs: a shorter chain of dependent additions.
inline float sum(const RegimeVector& of) {
    return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
}

// Risk exponent: if drafting has made a request slower, each chance in it counts as
// chance^exponent. This hardly changes chances near 1, and makes small chances negligible.
//
// Replaces chance, a float or a vector of floats, by that power; exponent >= 1. Between integer
// exponents it interpolates linearly, which is fast and gives the same result on every machine.
// Tiny results become 0, since processors are slow with denormal numbers.
template <typename T>
void weaken(T& chance, double exponent) {
    if (exponent == 1) return;
    constexpr float kNothing = 1e-18F;
    constexpr double kMost = 1e6;
    const auto whole = static_cast<int>(std::min(kMost, exponent));
    const auto part = static_cast<float>(std::min(kMost, exponent) - whole);
    T power = 1 - part * (1 - chance);
    for (int bits = whole; bits > 0; bits >>= 1) {
        chance = chance < kNothing ? chance * 0 : chance;
        power = power < kNothing ? power * 0 : power;
        if (bits & 1) power = power * chance;
        chance = chance * chance;
    }
    chance = power;
}

// What is known about one request's text.
struct TextRegime {
    // [group][regime]: probability of the regime after the group's last judged token.
    using Weights = std::array<double, kRegimes>;
    std::array<Weights, kSourceGroups> weights{};
    // [group][regime]: probability that it follows when a regime ends, from the frequency of
    // regimes in the last n_met[group] tokens.
    std::array<Weights, kSourceGroups> next{};
    std::array<double, kSourceGroups> n_met{};
    // [group]: position of the last judged token.
    std::array<int, kSourceGroups> position{};
    int temperature = 0;  // class of temperature: index of Acceptance's tables
    // [group]: seconds by which verifying drafts of the group has made this request slower than
    // plain decoding; negative: faster.
    std::array<double, kSourceGroups> regret{};
    // Seconds spent on making drafts, without the time in which a draft model processed the text.
    double spent = 0;
    int start = 0;  // position of the first token after the prompt
    // Rounds in which processing the text would have cost a draft model more than one step.
    int n_deferred = 0;
    // Seconds that a draft model was expected to save in all rounds, had it processed the text.
    double missed = 0;
};

// The probability that the target agrees with a drafted token, given the drafter's evidence.
//
// Two things are learned:
// - A running rate for each kind of evidence and class of temperature, shared by all requests.
//   Kinds are distinguished by the length of a match and whether an earlier copy broke off at the
//   token, the order and relative frequency of an n-gram, the number of forced bytes after the
//   token, the draft model's probability; and for an alternative, by its rank.
// - The regime of each request's text, such as copying or free: a hidden state that shifts the
//   log-odds of all rates of a group together and sometimes changes (the filter of Hamilton, "A new
//   approach to the economic analysis of nonstationary time series", 1989, with Bernoulli
//   observations).
// So rates remain valid in a text that alternates between regimes, and a change of regime is
// detected within a few tokens.
class Acceptance {
 public:
    Acceptance();

    // What is known at the start of a request. position: end of its prompt.
    TextRegime begin(double temperature, int position) const;

    // Learns from a draft whose first token has this position in the text. Its first n_right tokens
    // agreed with the target, which chose n_judged tokens. So token n_right, if it exists and
    // n_right < n_judged, was wrong; nothing is known about the tokens after it.
    void observe(TextRegime& regime, int position, std::span<const Evidence> draft, int n_right,
                 int n_judged);

    // The probability that the next token is right in the current regime; for rank > 0, given that
    // its elder siblings are wrong.
    double rate(const TextRegime& regime, const Evidence& evidence, int rank = 0) const;
    void observe_sibling(const TextRegime& regime, const Evidence& evidence, int rank, bool right);

    // What is known of a draft model's tokens, as numbers to be kept for the next session with the
    // same models; and a start from such numbers, unless they are not of this kind.
    std::vector<double> model_rates() const;
    void restore_model_rates(std::span<const double> numbers);

    // Predicts the result of a draft whose first token has this position. A draft model may add
    // tokens up to tokens.size() - 1 in total. Sets regimes to the probabilities of the regimes in
    // the group of the draft's first token. Sets tokens[g][regime] to the expected tokens of a
    // round that verifies g tokens in that regime: 1 plus the chances that the first i <= g are all
    // right, each weakened by `risk_exponent`. Returns the length after which tokens are hardly
    // ever reached; `tokens` is not set beyond it.
    int predict(const TextRegime& regime, int position, std::span<const Evidence> draft,
                double risk_exponent, TextRegime::Weights& regimes,
                std::span<RegimeLanes> tokens) const;

 private:
    // The rate of one kind of evidence.
    struct Bin {
        double log_odds = 0;
        double prior = 0;           // of log_odds
        double information = 0;     // Fisher information of the observations on log_odds
        RegimeLanes in_regime{};    // [regime]: the rate in it
        void believe(double rate);  // sets the prior
        void observe(const TextRegime::Weights& posterior, bool right);
        void set();  // in_regime, from log_odds
        // The mean over the regimes.
        double rate(const TextRegime::Weights& weights) const;
    };
    // All bins. Arrays are ordered from the least promising evidence to the most promising.
    struct Table {
        // By length. broken: confidence 0, an earlier copy broke off at the token.
        std::array<Bin, 14> match;
        std::array<Bin, 14> broken;
        std::array<Bin, 14> corpus;
        std::array<Bin, 14> history;
        std::array<std::array<Bin, 5>, 7> ngram;  // [order - 2], by frequency
        std::array<Bin, 6> forced;                // by the number of forced bytes after the token
        std::array<Bin, 5> by_history;            // predicted by ByteHistory, by confidence
        std::array<Bin, 10> model;
        std::array<Bin, 10> other;
        Bin any_of_model;  // tokens of the draft model with any confidence
        // Alternatives: [source][rank: 1, 2, more], by their expected rate.
        std::array<std::array<std::array<Bin, 5>, 3>, kSourceNames.size()> siblings;
        // [group][regime]: number of tokens in that regime, in all requests.
        std::array<TextRegime::Weights, kSourceGroups> met;
    };
    static constexpr std::size_t kTemperatures = 4;

    // Calls visit(bin) for each bin of a draft model's tokens.
    static void for_each_of_model(auto& tables, auto visit);
    // The bin of a kind of evidence in a Table, const or not. Inline, so that it is compiled with
    // its callers' vector instructions: on Intel processors, switching to other instructions and
    // back costs more than all the arithmetic for a token.
    [[gnu::always_inline]] static inline auto& bin_of(auto& table, const Evidence& evidence);
    static auto& bin_of(auto& table, const TextRegime& regime, const Evidence& evidence, int rank);
    // Advances the regime of a group to a position. The regime may have ended at each token in
    // between.
    static void pass(TextRegime& regime, std::size_t group, int position);

    std::array<Table, kTemperatures> tables_;
};

}  // namespace specllama
