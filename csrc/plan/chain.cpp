#include "plan/chain.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "clones.h"

namespace specllama {

SPECLLAMA_CLONES("avx2")
void Chain::look(int n_beside, double spent) {
    const auto beside = static_cast<float>(n_beside);
    PhaseVector best{};
    PhaseVector weights{};
    for (int s = 0; s < kPhases; ++s) weights[s] = static_cast<float>(phases[s]);
    for (int g = 0; g <= longest; ++g) {
        PhaseVector here;
        load(here, in_phase[g]);
        tokens[g] = sum(weights * here);
        // Lengths beyond the stake set no price: if tokens counted as cheap as there, nothing that
        // the stake allows would be worth drafting.
        if (extra(g) > stake) continue;
        const auto rounds_per_second = static_cast<float>(1 / (spent + seconds[g]));
        here = (here + beside) * rounds_per_second;
        best = here > best ? here : best;
    }
    speed = std::bit_cast<PhaseLanes>(best);
}

SPECLLAMA_CLONES("avx2")
void Chain::weigh(double most) {
    PhaseVector shares{};
    for (int s = 0; s < kPhases; ++s) {
        worth[s] = std::min<double>(1 / speed[s], most);
        shares[s] = static_cast<float>(phases[s] * worth[s]);
    }
    token_worth = sum(shares);
    for (int g = 0; g <= longest; ++g) {
        PhaseVector here;
        load(here, in_phase[g]);
        gain[g] = sum(shares * (here - 1));
    }
}

double Chain::most_saved(int first, int last) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int g = first; g <= last; ++g) most = std::max(most, saved(g));
    return most;
}

}  // namespace specllama
