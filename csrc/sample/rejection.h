#pragma once

#include "sample/distribution.h"
#include "specllama/types.h"

namespace specllama {

// Speculative sampling: what becomes of a draft token that was drawn from q where the target has p.
// It is kept with probability min(1, p / q); else the token is drawn from norm(max(0, p - q)). What
// comes out is distributed as p. (Leviathan, Kalman, Matias, "Fast inference from transformers via
// speculative decoding", 2023, algorithm 1; Chen et al. 2023, algorithm 2.)
//
// `q` null: the drafter had nothing else to propose. `lenience` below 1 scales q in the first test
// only (appendix A.5): then no token comes more often than with p / lenience.
// `accept` and `residual`: numbers strictly between 0 and 1, uniform, independent of each other and
// of what `drafted` was drawn with.
Token judge(const Distribution& p, Token drafted, const Distribution* q, double lenience,
            double accept, double residual);

}  // namespace specllama
