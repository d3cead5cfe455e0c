#pragma once

#include <array>
#include <limits>

#include "plan/acceptance.h"
#include "specllama/types.h"

namespace specllama {

// The value of each length g = 0 ... `longest` of one draft.
struct LengthValue {
    template <typename T>
    using ByLength = std::array<T, kMaxSpecLength + 1>;

    int longest = 0;
    // Probability of each regime.
    TextRegime::Weights regimes{};
    // [g][regime]: expected tokens of the round if the text is in that regime, weakened by the risk
    // exponent.
    ByLength<RegimeLanes> in_regime{};
    // [g]: seconds of the decode and of any drafting still needed.
    ByLength<double> seconds{};
    // Maximum seconds that a draft may add to the decode.
    double draft_budget = std::numeric_limits<double>::infinity();

    // Set by evaluate(). value[regime]: value of a token [s] in that regime; token_value: their
    // mean; tokens[g]: expected tokens over all regimes; gain[g]: value [s] of the tokens after the
    // first.
    TextRegime::Weights value{};
    double token_value = 0;
    ByLength<double> tokens{};
    ByLength<double> gain{};

    // Computes the value of a token in each regime: the time that it costs there at the best length
    // within the draft budget. An average speed would be wrong if the regime is uncertain: tokens
    // gained in a regime where many are right are cheap anyway, and time lost in a regime where few
    // are right is expensive. n_others: tokens that other sequences get from the decode; spent:
    // seconds of the round before the decode.
    void evaluate(int n_others, double spent);

    // Seconds that g tokens add to the decode.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    // Seconds that drafting g tokens saves if the text is certainly in this regime; -inf if they
    // exceed the draft budget.
    double time_saved_in(int regime, int g) const {
        return within_budget(g, value[regime] * (in_regime[g][regime] - 1));
    }
    // The most seconds that any length from first to last saves, averaged over the regimes.
    double most_time_saved(int first, int last) const;

 private:
    double within_budget(int g, double gained) const {
        return extra(g) <= draft_budget ? gained - extra(g)
                                        : -std::numeric_limits<double>::infinity();
    }
};

}  // namespace specllama
