#pragma once

#include <span>

#include "sample/distribution.h"
#include "sample/noise.h"
#include "specllama/types.h"

namespace specllama {

// A guess at a token. `drawn_from`: its distribution; null: the drafter had nothing else to
// propose.
struct Guess {
    Token token = kNoToken;
    const Distribution* drawn_from = nullptr;
};

// Speculative sampling: what becomes of a draft token that was drawn from q where the target has p.
// It is kept with probability min(1, p / q); else the token is drawn from norm(max(0, p - q)). What
// comes out is distributed as p. (Leviathan, Kalman, Matias, "Fast inference from transformers via
// speculative decoding", 2023, algorithm 1; Chen et al. 2023, algorithm 2.)
//
// Of several guesses each is judged like the first, with what that has left of p; those of one
// distribution are drawn without replacement, each from what the ones before have left of q. (Miao
// et al., "SpecInfer", 2024, section 4.3; without replacement: Chen et al., "Sequoia", 2024,
// section 3.2.) No two of them may be alike. How many there are must not depend on which were
// drawn.
//
// `lenience` below 1 scales q in the test only (appendix A.5): then no token comes more often than
// with p / lenience, where there is one guess. `accept`: guess i is kept by its number for i.
// `residual`: a number strictly between 0 and 1, uniform. Both are independent of each other and of
// what the guesses were drawn with. p is changed.
Token judge(Distribution& p, std::span<const Guess> guesses, double lenience, const Noise& accept,
            double residual);

}  // namespace specllama
