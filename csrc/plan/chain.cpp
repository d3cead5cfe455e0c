#include "plan/chain.h"

#include <algorithm>
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
        for (std::size_t s = 0; s < best_speed.size(); ++s)
            best_speed[s] = std::max(best_speed[s], (beside + in_phase[g][s]) * rounds_per_second);
    }
    Phase::Weights worth;
    for (int s = 0; s < kPhases; ++s)
        worth[s] = terms.phases[s] * std::min<double>(1 / best_speed[s], terms.most_worth) /
                   (1 + terms.caution);
    token_worth = std::accumulate(worth.begin(), worth.end(), 0.0);
    for (int g = 0; g <= longest; ++g) {
        tokens[g] = gain[g] = 0;
        for (int s = 0; s < kPhases; ++s) {
            tokens[g] += terms.phases[s] * in_phase[g][s];
            gain[g] += worth[s] * (in_phase[g][s] - 1);
        }
    }
}

}  // namespace specllama
