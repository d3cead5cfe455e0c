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

    // Set by look(). speed[phase]: tokens per second at the best length in that phase; tokens[g]:
    // expected tokens over all phases.
    PhaseLanes speed{};
    ByLength<double> tokens{};

    // Set by weigh(). worth[phase]: seconds that a token is worth in that phase; token_worth: their
    // mean; gain[g]: seconds that the tokens beyond the first are worth.
    Phase::Weights worth{};
    double token_worth = 0;
    ByLength<double> gain{};

    // n_beside: tokens that other sequences get from the same decode; spent: seconds of the round
    // before that decode.
    void look(int n_beside, double spent);

    // Values tokens by phase. If the phase is in doubt, an average speed would mislead: tokens
    // gained in a phase where many are right are cheap anyway, and time lost in a phase where few
    // are right is dear. So in each phase a token is worth the time that it costs there at the best
    // length within the stake, but no more than `most`, its cost elsewhere in the same decode.
    void weigh(double most);

    // Seconds that g tokens add to the decode.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    // Seconds by which drafting g tokens beats drafting none; -inf if they exceed the stake.
    double saved(int g) const { return within_stake(g, gain[g]); }
    // The same if the text is in this phase for certain.
    double saved_in(int phase, int g) const {
        return within_stake(g, worth[phase] * (in_phase[g][phase] - 1));
    }
    // The most that any length from first to last saves.
    double most_saved(int first, int last) const;

 private:
    double within_stake(int g, double gained) const {
        return extra(g) <= stake ? gained - extra(g) : -std::numeric_limits<double>::infinity();
    }
};

}  // namespace specllama
