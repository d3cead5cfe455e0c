// Compiled with -ffast-math, which lets the loop below call the vector functions of glibc.
#include "sample/probability.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "clones.h"

namespace specllama {

// For the vector registers that this processor has.
SPECLLAMA_CLONES("avx2", "avx512f")
double exp_sum(std::span<const float> logits, float origin) {
    // So few that a float loses nothing of their sum that matters.
    constexpr std::size_t kPart = 1024;
    double total = 0;
    for (std::size_t from = 0; from < logits.size(); from += kPart) {
        float sum = 0;
        for (const float logit : logits.subspan(from, std::min(kPart, logits.size() - from)))
            sum += std::exp(logit - origin);
        total += sum;
    }
    return total;
}

float probability(std::span<const float> logits, Token token) {
    return static_cast<float>(1 / exp_sum(logits, logits[token]));
}

}  // namespace specllama
