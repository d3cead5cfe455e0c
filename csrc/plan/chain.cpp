#include "plan/chain.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace specllama {

void Chain::weigh(const Terms& terms) {
    const auto beside = static_cast<float>(terms.n_beside);
    PhaseLanes best_speed{};
    for (int g = 0; g <= longest; ++g) {
        // A token that only too wide a decode has cheaply costs what it costs elsewhere: else
        // nothing would be worth drafting.
        if (seconds[g] - seconds[0] > terms.stake) continue;
        const auto rounds_per_second = static_cast<float>(1 / (terms.spent + seconds[g]));
        const PhaseLanes speed = (in_phase[g] + beside) * rounds_per_second;
        best_speed = speed > best_speed ? speed : best_speed;
    }
    Phase::Weights shares;
    for (int s = 0; s < kPhases; ++s) {
        worth[s] = std::min<double>(1 / best_speed[s], terms.most_worth) / (1 + terms.caution);
        shares[s] = phases[s] * worth[s];
    }
    token_worth = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (int g = 0; g <= longest; ++g) {
        tokens[g] = gain[g] = 0;
        for (int s = 0; s < kPhases; ++s) {
            tokens[g] += phases[s] * in_phase[g][s];
            gain[g] += shares[s] * (in_phase[g][s] - 1);
        }
    }
}

double Chain::most_saved(int first, int last, double stake) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int g = first; g <= last; ++g)
        if (extra(g) <= stake) most = std::max(most, saved(g));
    return most;
}

}  // namespace specllama
