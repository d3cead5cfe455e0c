#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "plan/constants.h"
#include "specllama/evidence.h"

namespace specllama {

// Drafters see a text in one of four ways: those that copy from it, those that copy from earlier
// requests, those that go by its grammar, and those that predict it as a model does. Each source
// group of a request has its own regime, since all sources of a group are good or bad at the same
// time.
inline constexpr int kSourceGroups = 4;
std::size_t source_group(Source source);

inline constexpr int kRegimes = static_cast<int>(tuning::kShifts.size());

// A number for each regime, padded to the lanes of a vector unit; the padding is never read.
using RegimeLanes = std::array<float, 8>;
static_assert(kRegimes <= std::tuple_size_v<RegimeLanes>);
// The same as a vector type of the compiler, for arithmetic: compilers do not vectorise these loops
// over arrays. Its layout depends on the processor, so it is neither stored nor passed by value.
using RegimeVector __attribute__((vector_size(sizeof(RegimeLanes)))) = float;

// In pairs: a shorter chain of dependent additions.
inline float sum(const RegimeVector& of) {
    return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
}

// Risk exponent: if drafting has made a request slower, each chance in it counts as
// chance^exponent. What is nearly sure then counts almost as before, and what is in doubt hardly at
// all.
//
// Replaces chance, a float or a vector of them, by that power; exponent >= 1. Between whole
// exponents it interpolates linearly, which is fast and the same on every machine. Tiny results
// become 0, since processors are slow with denormal numbers.
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

// What is known of one request's text.
struct TextRegime {
    // [group][regime]: probability of the regime, after the last token of the group that was
    // judged.
    using Weights = std::array<double, kRegimes>;
    std::array<Weights, kSourceGroups> weights{};
    // [group][regime]: how likely it is to follow when a regime ends, from how often regimes were
    // met in the last n_met[group] tokens.
    std::array<Weights, kSourceGroups> next{};
    std::array<double, kSourceGroups> n_met{};
    // [group]: position of the last token that was judged.
    std::array<int, kSourceGroups> position{};
    int temperature = 0;  // class of temperature: index of Acceptance's tables
    // [group]: seconds by which verifying drafts of the group has made this request slower than
    // plain decoding so far; negative: faster.
    std::array<double, kSourceGroups> regret{};
    // Seconds spent on making drafts, without what a draft model first had to take in.
    double spent = 0;
    int start = 0;  // position of the first token after the prompt
    // Rounds at which a draft model had too much to take in to be asked as a matter of course.
    int n_deferred = 0;
    // Seconds that a draft model that had taken in the text was expected to save in all rounds.
    double missed = 0;
};

// How likely the target is to agree with a drafted token, given the drafter's evidence for it.
//
// Two things are learned:
// - A running rate for each kind of evidence and class of temperature, shared by all requests.
// Kinds
//   are told apart by the length of a match and whether its token had broken off a copy before, the
//   order and relative frequency of an n-gram, how much of a forced run is left, the draft model's
//   probability; and for a guess beside others, by its rank.
// - The regime of each request's text, such as copying or free: a hidden state that shifts the
//   log-odds of all rates of a group together and changes now and then (the filter of Hamilton, "A
//   new approach to the economic analysis of nonstationary time series", 1989, with Bernoulli
//   observations).
// So rates survive in a text that alternates between regimes, and a change of regime is noticed
// within a few tokens.
class Acceptance {
 public:
    Acceptance();

    // What is known at the start of a request, whose prompt ends at this position.
    TextRegime begin(double temperature, int position) const;

    // Learns from a draft whose first token has this position in the text. Its first n_right tokens
    // agreed with the target, which named n_judged tokens. So token n_right, if it exists and
    // n_right < n_judged, was wrong; nothing is known of those behind it.
    void observe(TextRegime& regime, int position, std::span<const Evidence> draft, int n_right,
                 int n_judged);

    // How likely a token is right in the current regime if it is next; for rank > 0, given that the
    // guesses before it are wrong.
    double rate(const TextRegime& regime, const Evidence& evidence, int rank = 0) const;
    void observe_sibling(const TextRegime& regime, const Evidence& evidence, int rank, bool right);

    // Predicts how a draft does whose first token has this position, followed by tokens that a
    // draft model may add up to tokens.size() - 1. Sets regimes to the probabilities of the regimes
    // in the group of the draft's first token, and tokens[g][regime] to the expected tokens of a
    // round that verifies g tokens if the text is in that regime: 1 plus the chances that the first
    // i <= g are all right, each weakened by `risk_exponent`. Returns the length beyond which
    // hardly any token is ever reached; tokens beyond it are not set.
    int predict(const TextRegime& regime, int position, std::span<const Evidence> draft,
                double risk_exponent, TextRegime::Weights& regimes,
                std::span<RegimeLanes> tokens) const;

 private:
    // The rate of one kind of evidence.
    struct Bin {
        double log_odds = 0;
        double prior = 0;           // of log_odds
        double information = 0;     // Fisher information of the observations about log_odds
        RegimeLanes in_regime{};    // [regime]: the rate there
        void believe(double rate);  // sets the prior
        void observe(const TextRegime::Weights& posterior, bool right);
        void set();  // in_regime, from log_odds
        // The mean over the regimes.
        double rate(const TextRegime::Weights& weights) const;
    };
    // All bins. Arrays run from the least promising evidence to the most.
    struct Table {
        // By length; broken: confidence 0, the token had broken off a copy before.
        std::array<Bin, 14> match;
        std::array<Bin, 14> broken;
        std::array<Bin, 14> corpus;
        std::array<Bin, 14> history;
        std::array<std::array<Bin, 5>, 7> ngram;  // [order - 2], by frequency
        std::array<Bin, 6> forced;                // by the forced bytes behind the token
        std::array<Bin, 5> by_history;            // a byte that came before, by confidence
        std::array<Bin, 10> model;
        std::array<Bin, 10> other;
        Bin any_of_model;  // tokens of the draft model, whatever their confidence
        // Guesses beside others: [source][rank: 1, 2, more], by the rate believed of them.
        std::array<std::array<std::array<Bin, 5>, 3>, kSourceNames.size()> siblings;
        // [group][regime]: number of tokens in that regime, in all requests.
        std::array<TextRegime::Weights, kSourceGroups> met;
    };
    static constexpr std::size_t kTemperatures = 4;

    // The bin of a kind of evidence in a Table, const or not. Inline, so that it is compiled with
    // its callers' vector instructions: a call from these to others and back costs an Intel
    // processor more than all the arithmetic for a token.
    [[gnu::always_inline]] static inline auto& bin_of(auto& table, const Evidence& evidence);
    static auto& bin_of(auto& table, const TextRegime& regime, const Evidence& evidence, int rank);
    // Moves the regime of a group on to a position, where it may have ended at each token between.
    static void pass(TextRegime& regime, std::size_t group, int position);

    std::array<Table, kTemperatures> tables_;
};

}  // namespace specllama
