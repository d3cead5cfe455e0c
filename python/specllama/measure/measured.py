"""The figures of `specllama alpha`."""

from __future__ import annotations

from dataclasses import dataclass, field

from specllama.measure.alpha import Alpha, Rules
from specllama.measure.speed import Speed
from specllama.theory import DecodeTimes


@dataclass
class Measured:
    """Everything that the command measures, before it is printed.

    Attributes:
        repeated: For each temperature, the share of 4-grams of the generated text that occurred
            before in it.
        n_tokens: For each temperature, the number of generated tokens.
        v: Decode times of the model, seconds.
        draft_steps: d of each draft model by its name, seconds.
        alphas: For every drafter, temperature and lenience.
        rules: For every draft model and temperature.
        speeds: For every setting and draft length.
    """

    repeated: dict[float, float] = field(default_factory=dict)
    n_tokens: dict[float, int] = field(default_factory=dict)
    alphas: list[Alpha] = field(default_factory=list)
    rules: list[Rules] = field(default_factory=list)
    v: DecodeTimes = field(default_factory=DecodeTimes)
    draft_steps: dict[str, float] = field(default_factory=dict)
    speeds: list[Speed] = field(default_factory=list)
