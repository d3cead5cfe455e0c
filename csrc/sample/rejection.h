#pragma once

#include <span>

#include "sample/distribution.h"
#include "sample/noise.h"
#include "specllama/types.h"

namespace specllama {

// A draft token to judge. drawn_from: the distribution it was drawn from; null: the drafter had no
// alternative to it, as if q were 1.
struct Guess {
    Token token = kNoToken;
    const Distribution* drawn_from = nullptr;
};

// Speculative sampling: judges a draft token that was drawn from q against the target's p. The
// token is accepted with probability min(1, p / q); otherwise one is drawn from norm(max(0, p -
// q)). The result is distributed as p. (Leviathan, Kalman, Matias, "Fast inference from
// transformers via speculative decoding", 2023, algorithm 1; Chen et al. 2023, algorithm 2.)
//
// Several guesses are judged in order, each against the part of p that the rejected ones before it
// leave. Guesses from one distribution are drawn without replacement, so each counts as drawn from
// the part of q that the ones before it leave. (Miao et al., "SpecInfer", 2024, section 4.3;
// without replacement: Chen et al., "Sequoia", 2024, section 3.2.) No two guesses may be equal, and
// their number must not depend on which tokens were drawn.
//
// lenience: below 1, it scales q in the test only (Leviathan et al., appendix A.5); with one guess,
// no token then has a probability above p / lenience. accept: its number for i decides about guess
// i. residual: a uniform number strictly between 0 and 1. Both must be independent of each other
// and of the noise of the guesses. p is changed.
Token judge(Distribution& p, std::span<const Guess> guesses, double lenience, const Noise& accept,
            double residual);

}  // namespace specllama
