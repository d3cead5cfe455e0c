#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "plan/constants.h"
#include "specllama/evidence.h"

namespace specllama {

// Ways to see a text: by copying it; by what its grammar leaves; or otherwise, as a model does. A
// phase is good or bad for all sources of a view.
inline constexpr int kViews = 3;
std::size_t view_of(Source source);

inline constexpr int kPhases = static_cast<int>(tuning::kShifts.size());

// A number for each phase, in as many lanes as a vector unit takes at once; of those behind the
// last phase nothing is asked.
using PhaseLanes = std::array<float, 8>;
static_assert(kPhases <= std::tuple_size_v<PhaseLanes>);
// The same as a type of the compiler's, to compute with: of arrays it makes no vectors here. How
// that lies in memory depends on the processor, so it is neither kept nor passed by value.
using PhaseVector __attribute__((vector_size(sizeof(PhaseLanes)))) = float;

inline void load(PhaseVector& to, const PhaseLanes& from) {
    std::memcpy(&to, from.data(), sizeof(to));
}

// In pairs, so that none waits for all before it.
inline float sum(const PhaseVector& of) {
    return ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
}

// Caution: a request that drafting has made slower counts what is likely as a power of it. So what
// is all but sure counts nearly as before, and what is in doubt hardly at all. exponent: 1 or more;
// 1: as it is.
//
// Makes of a chance what it counts as. T: a number, or a vector of them. Between whole exponents it
// goes in a straight line: that is fast, and the same on every machine. What is next to nothing is
// nothing, since processors are slow with numbers that small.
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

// What is known of one request's text: which phase it is in, in each view.
struct Phase {
    // Probabilities of the shifts, after the last token that was judged.
    using Weights = std::array<double, kPhases>;
    std::array<Weights, kViews> weights{};
    // How likely each is the next one when a phase ends: as often as it was met, in so many tokens.
    std::array<Weights, kViews> next{};
    std::array<double, kViews> n_met{};
    // Position of that token.
    std::array<int, kViews> position{};
    int temperature = 0;  // its class
    // Seconds by which verifying drafts has made this request slower, so far, than plain decoding,
    // by the view that they came from; negative where it has made it faster. And those that went
    // into making drafts, but for what a draft model had to take in first.
    std::array<double, kViews> debt{};
    double spent = 0;
    // Seconds that a draft model could have saved if it had known the text, as is believed or, in
    // part, hoped.
    double missed = 0;
};

// How often the target agrees with a token, given what its drafter knows about it.
//
// Two things are learned. For each kind of evidence (the length of a match and whether the token
// copied had broken off a copy, the order and relative frequency of an n-gram, what is left of what
// a grammar forces, the probability that a draft model gives; and of a guess beside others, how
// many come before it), and for each class of temperature, a running rate, shared by all requests.
// And for each request the phase its text is in: a hidden state that shifts the log-odds of all
// rates of a view together, and now and then changes (the filter of Hamilton, "A new approach to
// the economic analysis of nonstationary time series", 1989, with Bernoulli observations). So rates
// are remembered over a text that changes between copying and free, and a change is noticed within
// a few tokens.
class Acceptance {
 public:
    Acceptance();

    // The phase at the start of a request.
    Phase begin(double temperature, int position) const;

    // What the target said about a draft whose first token has this position in the text: of its
    // tokens the first n_right were right, and the target was heard about n_judged. So token
    // n_right, if there is one and n_right < n_judged, was wrong; of those behind it nothing is
    // known.
    void observe(Phase& phase, int position, std::span<const Evidence> draft, int n_right,
                 int n_judged);

    // How likely a token is right by itself, as the text is now; one of a rank above 0 once the
    // guesses before it are wrong.
    double rate(const Phase& phase, const Evidence& evidence, int rank = 0) const;
    void observe_sibling(const Phase& phase, const Evidence& evidence, int rank, bool right);

    // What may come of a draft whose first token has this position, and of what the draft model may
    // add to it. phases: how likely they are, in the view of the draft's first token. tokens[g]: of
    // a round with g tokens, if the text is in a phase in that view, the tokens to expect, as
    // caution (an exponent) counts them: 1 and those that are right. Returns how many tokens are
    // ever reached.
    int foresee(const Phase& phase, int position, std::span<const Evidence> draft, double caution,
                Phase::Weights& phases, std::span<PhaseLanes> tokens) const;

 private:
    // One rate, and what the phases make of it.
    struct Bin {
        double log_odds = 0;
        double prior = 0;        // of the log-odds
        double information = 0;  // from what was observed, about the log-odds
        PhaseLanes in_phase{};
        void believe(double rate);  // beforehand
        void observe(const Phase::Weights& posterior, bool right);
        void set();
        // With the phase as it is known.
        double rate(const Phase::Weights& weights) const;
    };
    // A bin for each kind of evidence; where there are many, from the least that promises to the
    // most.
    struct Table {
        // By length; broken: of confidence 0.
        std::array<Bin, 14> match;
        std::array<Bin, 14> broken;
        std::array<Bin, 14> corpus;
        std::array<std::array<Bin, 5>, 7> ngram;  // [order - 2], by frequency
        std::array<Bin, 6> forced;                // by the bytes behind the token
        std::array<Bin, 5> habit;                 // of a grammar, but of confidence below 1
        std::array<Bin, 10> model;
        std::array<Bin, 10> other;
        Bin any_of_model;  // of whatever confidence
        // Guesses beside others: [source][rank: 1, 2, more], by what is believed of them.
        std::array<std::array<std::array<Bin, 5>, 3>, kSourceNames.size()> siblings;
        // How often each shift was met, by view.
        std::array<Phase::Weights, kViews> met;
    };
    static constexpr std::size_t kTemperatures = 4;

    // table: a Table, constant or not.
    static auto& bin_of(auto& table, const Evidence& evidence);
    static auto& bin_of(auto& table, const Phase& phase, const Evidence& evidence, int rank);
    // Lets the phase in a view end, perhaps, in each token up to a position.
    static void pass(Phase& phase, std::size_t view, int position);

    std::array<Table, kTemperatures> tables_;
};

}  // namespace specllama
