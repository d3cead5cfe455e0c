// Compiled with -ffast-math, which lets the loop below call the vector functions of glibc.
#include "sample/probability.h"

#include <cmath>

// For the vector registers that this processor has. (Resolved before a sanitizer is ready for it.)
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SPECLLAMA_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SPECLLAMA_CLONES
#endif

namespace specllama {

SPECLLAMA_CLONES float probability(std::span<const float> logits, Token token) {
    const float logit = logits[token];
    float sum = 0;
    for (const float other : logits) sum += std::exp(other - logit);
    return 1 / sum;
}

}  // namespace specllama
