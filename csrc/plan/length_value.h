#pragma once

#include <array>
#include <limits>

#include "plan/acceptance.h"
#include "specllama/types.h"

namespace specllama {

// What each length g = 0 ... `longest` of one draft is worth.
struct LengthValue {
    template <typename T>
    using ByLength = std::array<T, kMaxSpecLength + 1>;

    int longest = 0;
    // Probability of each regime.
    TextRegime::Weights regimes{};
    // [g][regime]: expected tokens of the round if the text is in that regime, weakened by risk
    // exponent.
    ByLength<RegimeLanes> in_regime{};
    // [g]: seconds of the decode plus those of any drafting that is still to be done for it.
    ByLength<double> seconds{};
    // Seconds that a draft may add to the decode at most.
    double draft_budget = std::numeric_limits<double>::infinity();

    // Set by evaluate(). value[regime]: seconds that a token is worth in that regime; token_value:
    // their mean; tokens[g]: expected tokens over all regimes; gain[g]: seconds that those beyond
    // the first are worth.
    TextRegime::Weights value{};
    double token_value = 0;
    ByLength<double> tokens{};
    ByLength<double> gain{};

    // Values tokens by regime. If the regime is in doubt, an average speed would mislead: tokens
    // gained in a regime where many are right are cheap anyway, and time lost in a regime where few
    // are right is dear. So in each regime a token is worth the time that it costs there at the
    // best length within the draft budget. n_others: tokens that other sequences get from that
    // decode; spent: seconds of the round before it.
    void evaluate(int n_others, double spent);

    // Seconds that g tokens add to the decode.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    // Seconds by which drafting g tokens beats drafting none if the text is in this regime for
    // certain; -inf if they exceed the draft budget.
    double time_saved_in(int regime, int g) const {
        return within_budget(g, value[regime] * (in_regime[g][regime] - 1));
    }
    // The most that any length from first to last saves, whatever the regime.
    double most_time_saved(int first, int last) const;

 private:
    double within_budget(int g, double gained) const {
        return extra(g) <= draft_budget ? gained - extra(g)
                                        : -std::numeric_limits<double>::infinity();
    }
};

}  // namespace specllama
