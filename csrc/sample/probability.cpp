// Compiled with -ffast-math, which lets the loop below call the vector functions of glibc.
#include "sample/probability.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

// For the vector registers that this processor has. (Resolved before a sanitizer is ready for it.)
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPECLLAMA_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SPECLLAMA_CLONES
#endif

namespace specllama {

SPECLLAMA_CLONES double exp_sum(std::span<const float> logits, float origin) {
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
