#include "plan/chain.h"

#include <algorithm>

#include "clones.h"

namespace specllama {

SPECLLAMA_CLONES("avx2")
void Chain::weigh(int n_beside, double spent) {
    const auto beside = static_cast<float>(n_beside);
    PhaseVector best{};
    PhaseVector weights{};
    for (int s = 0; s < kPhases; ++s) weights[s] = static_cast<float>(phases[s]);
    for (int g = 0; g <= longest; ++g) {
        auto here = __builtin_bit_cast(PhaseVector, in_phase[g]);
        tokens[g] = sum(weights * here);
        // Lengths beyond the stake set no price: if tokens counted as cheap as there, nothing that
        // the stake allows would be worth drafting.
        if (extra(g) > stake) continue;
        const auto rounds_per_second = static_cast<float>(1 / (spent + seconds[g]));
        here = (here + beside) * rounds_per_second;
        best = here > best ? here : best;
    }
    PhaseVector shares{};
    for (int s = 0; s < kPhases; ++s) {
        worth[s] = 1 / best[s];
        shares[s] = static_cast<float>(phases[s] * worth[s]);
    }
    token_worth = sum(shares);
    for (int g = 0; g <= longest; ++g)
        gain[g] = sum(shares * (__builtin_bit_cast(PhaseVector, in_phase[g]) - 1));
}

double Chain::most_saved(int first, int last) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int g = first; g <= last; ++g) most = std::max(most, within_stake(g, gain[g]));
    return most;
}

}  // namespace specllama
