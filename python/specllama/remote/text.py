"""A text that a target elsewhere continues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specllama import _core


@dataclass(frozen=True)
class Text:
    """A prompt, and how it is continued. Stop strings are the session's own concern.

    Attributes:
        prompt: Token ids.
        max_tokens: Most tokens of the generation.
        sampling: How tokens are chosen; with a seed.
        cache_prompt: Whether what the target's memory holds of the prompt is used.
    """

    prompt: list[int]
    max_tokens: int
    sampling: _core.SamplingOptions
    cache_prompt: bool

    def options(self) -> dict[str, Any]:
        """Return the options for the target, by their names in `GenerateOptions`."""
        sampling = self.sampling
        wanted = {name: value for name, value in named(sampling).items() if name not in _APART}
        wanted |= {"seed": sampling.seed, "max_tokens": self.max_tokens}
        if not self.cache_prompt:
            wanted["cache_prompt"] = False
        if sampling.logit_bias:
            wanted["logit_bias"] = [
                (token, None if bias == float("-inf") else bias)
                for token, bias in sampling.logit_bias
            ]
        if sampling.logprobs >= 0:
            wanted["logprobs"] = sampling.logprobs
        if sampling.reasoning_budget >= 0:
            wanted["reasoning_budget"] = sampling.reasoning_budget
        if sampling.grammar:
            is_regex = sampling.grammar_syntax == _core.GrammarSyntax.regex
            wanted["regex" if is_regex else "grammar"] = sampling.grammar
            if sampling.grammar_triggers:
                wanted["grammar_triggers"] = sampling.grammar_triggers
        return wanted


_APART = frozenset((
    "logit_bias", "logprobs", "seed", "acceptance", "lenience", "grammar", "grammar_syntax",
    "grammar_triggers", "reasoning_budget", "reasoning_opening", "reasoning_closing",
))  # fmt: skip
"""Options that are written in another form, only where they are given, or that concern drafts."""


def named(options: _core.SamplingOptions) -> dict[str, Any]:
    """Return all options, as they are named in `GenerateOptions`."""
    return {one.name: getattr(options, one.name) for one in _core.sampling_options()}
