#include "plan/length_value.h"

#include <algorithm>

#include "clones.h"

namespace specllama {

SPECLLAMA_CLONES("avx2")
void LengthValue::evaluate(int n_others, double spent) {
    const auto others = static_cast<float>(n_others);
    RegimeVector best{};
    RegimeVector weights{};
    for (int s = 0; s < kRegimes; ++s) weights[s] = static_cast<float>(regimes[s]);
    for (int g = 0; g <= longest; ++g) {
        auto here = __builtin_bit_cast(RegimeVector, in_regime[g]);
        tokens[g] = sum(weights * here);
        // Lengths beyond the draft budget are ignored: with their cheap tokens as the value, no
        // length within the draft budget would pay.
        if (extra(g) > draft_budget) continue;
        const auto rounds_per_second = static_cast<float>(1 / (spent + seconds[g]));
        here = (here + others) * rounds_per_second;
        best = here > best ? here : best;
    }
    RegimeVector shares{};
    for (int s = 0; s < kRegimes; ++s) {
        value[s] = 1 / best[s];
        shares[s] = static_cast<float>(regimes[s] * value[s]);
    }
    token_value = sum(shares);
    for (int g = 0; g <= longest; ++g)
        gain[g] = sum(shares * (__builtin_bit_cast(RegimeVector, in_regime[g]) - 1));
}

double LengthValue::most_time_saved(int first, int last) const {
    double most = -std::numeric_limits<double>::infinity();
    for (int g = first; g <= last; ++g) most = std::max(most, within_budget(g, gain[g]));
    return most;
}

}  // namespace specllama
