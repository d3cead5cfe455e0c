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
    // Probabilities of the phases.
    Phase::Weights phases{};
    // [g]: tokens to expect of the round in each phase.
    std::array<PhaseLanes, kMaxSpecLength + 1> in_phase{};
    // [g]: seconds of the decode, and of what drafting is still to be done for it.
    std::array<double, kMaxSpecLength + 1> seconds{};

    // What weigh() makes of these. Seconds that a token is worth in each phase, and on average.
    Phase::Weights worth{};
    double token_worth = 0;
    // [g]: tokens to expect, and the seconds that they are worth.
    std::array<double, kMaxSpecLength + 1> tokens{};
    std::array<double, kMaxSpecLength + 1> gain{};

    // Where the phase of the text is in doubt, tokens gained where many are right are cheap anyway,
    // and time lost where few are is not. So in each phase a token counts as the time it costs
    // there at the length that is best there, of those that the stake allows.
    void weigh(const Terms& terms);

    // Seconds that a length adds to the decode; and by which it is faster than none, altogether.
    double extra(int g) const { return seconds[g] - seconds[0]; }
    double saved(int g) const { return gain[g] - extra(g); }
    // The same if the text is in this phase for certain.
    double saved_in(int phase, int g) const {
        return worth[phase] * (in_phase[g][phase] - 1) - extra(g);
    }
    // By the best of some lengths that add no more than `stake`; -inf: all do.
    double most_saved(int first, int last, double stake) const;
};

}  // namespace specllama
