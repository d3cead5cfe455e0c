#pragma once

#include <array>
#include <limits>

#include "plan/acceptance.h"
#include "specllama/types.h"

namespace specllama {

// What each length g = 0 ... `longest` of one draft is worth.
struct Chain {
    template <typename T>
    using ByLength = std::array<T, kMaxSpecLength + 1>;

    int longest = 0;
    // Probability of each phase.
    Phase::Weights phases{};
    // [g][phase]: expected tokens of the round if the text is in that phase, weakened by caution.
    ByLength<PhaseLanes> in_phase{};
    // [g]: seconds of the decode plus those of any drafting that is still to be done for it.
    ByLength<double> seconds{};
    // Seconds that a draft may add to the decode at most.
    double stake = std::numeric_limits<double>::infinity();

    // Set by weigh(). worth[phase]: seconds that a token is worth in that phase; token_worth: their
    // mean; tokens[g]: expected tokens over all phases; gain[g]: seconds that those beyond the
    // first are worth.
    Phase::Weights worth{};
    double token_worth = 0;
    ByLength<double> tokens{};
    ByLength<double> gain{};

    // Values tokens by phase. If the phase is in doubt, an average speed would mislead: tokens
    // gained in a phase where many are right are cheap anyway, and time lost in a phase where few
    // are right is dear. So in each phase a token is worth the time that it costs there at the best
    // length within the stake. n_beside: tokens that other sequences get from that decode; spent:
    // seconds of the round before it.
    void weigh(int n_beside, double spent);

    // Seconds that g tokens add to the decode.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    // Seconds by which drafting g tokens beats drafting none if the text is in this phase for
    // certain; -inf if they exceed the stake.
    double saved_in(int phase, int g) const {
        return within_stake(g, worth[phase] * (in_phase[g][phase] - 1));
    }
    // The most that any length from first to last saves, whatever the phase.
    double most_saved(int first, int last) const;

 private:
    double within_stake(int g, double gained) const {
        return extra(g) <= stake ? gained - extra(g) : -std::numeric_limits<double>::infinity();
    }
};

}  // namespace specllama
