#pragma once

#include <array>
#include <limits>

#include "plan/acceptance.h"
#include "specllama/types.h"

namespace specllama {

// What every length of one draft is worth: g = 0 to `longest` tokens of it.
struct Chain {
    // What it is weighed against.
    struct Terms {
        Phase::Weights phases{};
        // Tokens that other sequences get from the same decode.
        int n_beside = 0;
        // Seconds before the decode.
        double spent = 0;
        // Seconds that a token is worth at most: what it costs elsewhere in the same decode.
        double most_worth = 0;
        // Part by which time to be lost counts more than time to be saved.
        double caution = 0;
        // Seconds that a draft may add to the decode.
        double stake = std::numeric_limits<double>::infinity();
    };

    int longest = 0;
    // [g]: to expect of the round in each phase; on average.
    std::array<PhaseLanes, kMaxSpecLength + 1> in_phase{};
    std::array<double, kMaxSpecLength + 1> tokens{};
    // Seconds of the decode, and of what drafting is still to be done for it.
    std::array<double, kMaxSpecLength + 1> seconds{};
    // Seconds that its tokens are worth.
    std::array<double, kMaxSpecLength + 1> gain{};
    // Seconds that a token is worth that comes for certain.
    double token_worth = 0;

    // Fills in tokens, gain and token_worth, from in_phase and seconds.
    //
    // Where the phase of the text is in doubt, tokens gained where many are right are cheap anyway,
    // and time lost where few are is not. So in each phase a token counts as the time it costs
    // there at the length that is best there, of those that the stake allows.
    void weigh(const Terms& terms);

    // Seconds by which a length is faster than none.
    double saved(int g) const { return gain[g] - (seconds[g] - seconds[0]); }
};

}  // namespace specllama
