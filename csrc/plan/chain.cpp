#include "plan/chain.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "clones.h"

namespace specllama {

SPECLLAMA_CLONES("avx2")
void Chain::look(int n_beside, double spent) {
    const auto beside = static_cast<float>(n_beside);
    PhaseVector best{};
    for (int g = 0; g <= longest; ++g) {
        tokens[g] = 0;
        for (int s = 0; s < kPhases; ++s) tokens[g] += phases[s] * in_phase[g][s];
        // A token that only too wide a decode has cheaply costs what it costs elsewhere: else
        // nothing would be worth drafting.
        if (extra(g) > stake) continue;
        const auto rounds_per_second = static_cast<float>(1 / (spent + seconds[g]));
        PhaseVector here;
        std::memcpy(&here, in_phase[g].data(), sizeof(here));
        here = (here + beside) * rounds_per_second;
        best = here > best ? here : best;
    }
    speed = std::bit_cast<PhaseLanes>(best);
}

SPECLLAMA_CLONES("avx2")
void Chain::weigh(double most) {
    Phase::Weights shares;
    for (int s = 0; s < kPhases; ++s) {
        worth[s] = std::min<double>(1 / speed[s], most);
        shares[s] = phases[s] * worth[s];
    }
    token_worth = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (int g = 0; g <= longest; ++g) {
        gain[g] = 0;
        for (int s = 0; s < kPhases; ++s) gain[g] += shares[s] * (in_phase[g][s] - 1);
    }
}

double Chain::most_saved(int first, int last) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int g = first; g <= last; ++g) most = std::max(most, saved(g));
    return most;
}

}  // namespace specllama
