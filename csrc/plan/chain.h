#pragma once

#include <array>
#include <limits>

#include "plan/acceptance.h"
#include "specllama/types.h"

namespace specllama {

// What every length of one draft is worth: g = 0 to `longest` tokens of it.
struct Chain {
    template <typename T>
    using ByLength = std::array<T, kMaxSpecLength + 1>;

    int longest = 0;
    // Probabilities of the phases.
    Phase::Weights phases{};
    // [g]: tokens to expect of the round in each phase, as caution counts them.
    ByLength<PhaseLanes> in_phase{};
    // [g]: seconds of the decode, and of what drafting is still to be done for it.
    ByLength<double> seconds{};
    // Seconds that a draft may add to the decode.
    double stake = std::numeric_limits<double>::infinity();

    // What look() makes of these: in each phase tokens in a second at the length that is best
    // there; and [g]: tokens to expect.
    PhaseLanes speed{};
    ByLength<double> tokens{};

    // What weigh() makes of these: seconds that a token is worth in each phase, and on average; and
    // [g]: that the tokens are worth which are more than one.
    Phase::Weights worth{};
    double token_worth = 0;
    ByLength<double> gain{};

    // n_beside: tokens that other sequences get from the same decode; spent: seconds of the round
    // before it.
    void look(int n_beside, double spent);

    // Where the phase of the text is in doubt, tokens gained where many are right are cheap anyway,
    // and time lost where few are is not. So in each phase a token counts as the time it costs
    // there at the length that is best there, of those that the stake allows. It is worth no more
    // than `most`: what it costs elsewhere in the same decode.
    void weigh(double most);

    // Seconds that a length adds to the decode; and by which it is faster than none, altogether;
    // -inf: it adds more than the stake.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    double saved(int g) const { return within_stake(g, gain[g]); }
    // The same if the text is in this phase for certain.
    double saved_in(int phase, int g) const {
        return within_stake(g, worth[phase] * (in_phase[g][phase] - 1));
    }
    // By the best of some lengths.
    double most_saved(int first, int last) const;

 private:
    double within_stake(int g, double gained) const {
        return extra(g) <= stake ? gained - extra(g) : -std::numeric_limits<double>::infinity();
    }
};

}  // namespace specllama
