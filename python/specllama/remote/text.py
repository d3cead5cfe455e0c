"""A text that a remote target continues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specllama import _core


@dataclass(frozen=True)
class Text:
    """A prompt, and options of its continuation. Only the session handles stop strings.

    Attributes:
        prompt: Token ids.
        max_tokens: Maximum number of tokens of the generation.
        sampling: Options of sampling, with a seed.
        cache_prompt: Whether to reuse the part of the prompt that is in the target's memory.
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
"""Options that are sent in another form or only if they are given, or that concern only drafts."""


def named(options: _core.SamplingOptions) -> dict[str, Any]:
    """Return all options by their names in `GenerateOptions`."""
    return {one.name: getattr(options, one.name) for one in _core.sampling_options()}
