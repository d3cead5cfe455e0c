"""Stop strings that are texts of control tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted_model import write_scripted_model
from session_options import Open

CONTROL = "<|fim_middle|>"


@pytest.mark.parametrize("draft", [None, "ngram"])
@pytest.mark.parametrize(
    ("stop", "text", "stopped_by"),
    [
        (CONTROL, "Hello ", CONTROL),
        (["zz", CONTROL], "Hello ", CONTROL),
        ("wor", "Hello ", "wor"),
        ("<|fim", "Hello world", ""),
        ([], "Hello world", ""),
    ],
)
def test_the_text_of_a_control_token_can_be_a_stop_string(
    tmp_path: Path, open_session: Open, draft: Any, stop: Any, text: str, stopped_by: str
) -> None:
    path = tmp_path / "m.gguf"
    write_scripted_model(path, ["Hello ", CONTROL, "world"], control=[CONTROL])
    found = open_session(path, draft=draft).generate([1], stop=stop)
    assert (found.text, found.stop_string or "") == (text, stopped_by)
    assert found.finish_reason == "stop"


def test_the_text_before_a_control_token_is_streamed_unchanged(
    tmp_path: Path, open_session: Open
) -> None:
    path = tmp_path / "m.gguf"
    write_scripted_model(path, ["Hello ", CONTROL, "world"], control=[CONTROL])
    stream = open_session(path, draft=None).stream([1], stop=CONTROL)
    assert "".join(chunk.text for chunk in stream) == "Hello "
