"""Arguments of other libraries, given to SpecSession."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from specllama import SpecSession


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("model_path", "the model is the first argument"),
        ("n_thread", "give n_threads="),
        ("type_k", "give kv_type="),
        ("chat_format", "the model's own template is used"),
        ("seed", r"an option of each call, as in generate\(prompt, seed=...\)"),
        ("n_ctxx", "did you mean n_ctx"),
        ("zzz", r"see help\(SpecSession\)"),
    ],
)
def test_arguments_of_other_libraries_are_translated(argument: str, advice: str) -> None:
    options: dict[str, Any] = {argument: 1}
    with pytest.raises(TypeError, match=f"no argument '{argument}': .*{advice}"):
        SpecSession("model.gguf", **options)


def test_the_constructor_keeps_its_signature() -> None:
    parameters = signature(SpecSession).parameters
    assert parameters["n_ctx"].default is None
    assert "options" not in parameters
