"""Editors complete the options of generations and sessions."""

from __future__ import annotations

import jedi
import pytest

SESSION = 'from specllama import SpecSession\nsession = SpecSession("model.gguf")\n'


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ('session.generate("x", repeat_', ["repeat_last_n=", "repeat_penalty="]),
        ('session.stream("x", xtc_', ["xtc_probability=", "xtc_threshold="]),
        ('session.submit("x", typ', ["typical_p="]),
        ("session.chat([], reas", ["reasoning_budget="]),
        ("session.stream_chat([], json", ["json_schema="]),
        ('session.infill("x", "y", logit', ["logit_bias="]),
        ('session.replay("x", "y", top_', ["top_k=", "top_n_sigma=", "top_p="]),
        ('session.agenerate("x", max_', ["max_tokens="]),
        ("session.achat([], max_", ["max_tokens="]),
        ('SpecSession("x", n_gp', ["n_gpu_layers="]),
        ('SpecSession("x", spec_', ["spec_length=", "spec_tree="]),
        ('SpecSession("x", chat_', ["chat_template="]),
    ],
)
def test_jedi_completes_the_options_of_sessions_and_generations(
    typed: str, expected: list[str]
) -> None:
    completions = jedi.Script(SESSION + typed).complete()
    assert sorted(one.name for one in completions if one.name.endswith("=")) == expected
