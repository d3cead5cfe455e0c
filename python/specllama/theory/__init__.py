"""The gain of speculative decoding as arithmetic. Nothing here needs a model.

- `distributions`: acceptance from two distributions over tokens
- `iid`: formulas for one acceptance rate
- `several`, `trees`: the gain of several candidates at a position
- `decode_times`: times of decodes
- `measured`: formulas for measured times
- `heads`: formulas for drafts by the target's own layers
- `oracle`: a bound for all choices of draft lengths

Leviathan et al. is "Fast Inference from Transformers via Speculative Decoding" (ICML 2023). Numbers
of equations, theorems and sections without another source refer to that paper.

Everywhere, gamma is the number of drafted tokens, alpha the probability that one of them is
accepted, v(n) the time of a target decode of n tokens, and d that of one draft-model step.
"""

from __future__ import annotations

from specllama.theory.decode_times import DecodeTimes, DecodeTimesLike
from specllama.theory.distributions import (
    acceptance,
    alpha,
    coupled_acceptance,
    coupled_acceptance_bound,
    greedy_draft_acceptance,
    lk_divergence,
)
from specllama.theory.heads import speedup_of_heads
from specllama.theory.iid import (
    expected_tokens,
    improvement_factor,
    improvement_lower_bound,
    operations_factor,
    optimal_gamma,
)
from specllama.theory.measured import (
    measured_improvement_factor,
    measured_optimal_gamma,
    speeds,
    time_per_token,
)
from specllama.theory.oracle import OraclePath, oracle_bound
from specllama.theory.several import acceptance_of_several, coupled_acceptance_of_several
from specllama.theory.trees import BestTree, best_tree, tree_expected_tokens

__all__ = [
    "BestTree",
    "DecodeTimes",
    "DecodeTimesLike",
    "OraclePath",
    "acceptance",
    "acceptance_of_several",
    "alpha",
    "best_tree",
    "coupled_acceptance",
    "coupled_acceptance_bound",
    "coupled_acceptance_of_several",
    "expected_tokens",
    "greedy_draft_acceptance",
    "improvement_factor",
    "improvement_lower_bound",
    "lk_divergence",
    "measured_improvement_factor",
    "measured_optimal_gamma",
    "operations_factor",
    "optimal_gamma",
    "oracle_bound",
    "speeds",
    "speedup_of_heads",
    "time_per_token",
    "tree_expected_tokens",
]
