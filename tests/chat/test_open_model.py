"""The model of a chat, whose drafter changes while it is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from specllama import ModelError, SpecSession
from specllama.chat import commands, open_model
from specllama.chat.chat import Chat
from specllama.chat.open_model import OpenModel

PIECES = ["u", ":", "a", "b", "c", "d"]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.fixture
def model(scripted: Callable[..., Path]) -> Iterator[OpenModel]:
    path = scripted(PIECES, chat_template=TEMPLATE)
    with OpenModel({"model": path, "draft": "ngram", "n_threads": 1, "n_gpu_layers": 0}) as one:
        yield one


def answer(model: OpenModel) -> str:
    return model.session.chat([{"role": "user", "content": "u"}]).text


def interrupted(times: int) -> Callable[..., SpecSession]:
    """Return SpecSession with its first calls interrupted by Ctrl-C."""
    left = [KeyboardInterrupt()] * times

    def opened(**options: Any) -> SpecSession:
        if left:
            raise left.pop()
        return SpecSession(**options)

    return opened


def test_changing_the_chats_drafter_opens_a_new_session(model: OpenModel) -> None:
    first = model.session
    model.redraft("none")
    assert model.drafter == "none"
    assert model.session is not first
    assert answer(model) == ":abcd"


def test_a_missing_draft_model_keeps_the_old_drafter(model: OpenModel) -> None:
    with pytest.raises(ModelError, match=r"no file /no/such\.gguf"):
        model.redraft("/no/such.gguf")
    assert model.drafter == "n-grams"
    assert answer(model) == ":abcd"


def test_ctrl_c_while_the_old_session_closes_keeps_the_old_drafter(
    model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(session: SpecSession) -> None:
        monkeypatch.undo()
        session.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(SpecSession, "close", close)
    with pytest.raises(KeyboardInterrupt):
        model.redraft("none")
    assert model.drafter == "n-grams"
    assert answer(model) == ":abcd"


def test_ctrl_c_while_a_session_opens_keeps_the_old_drafter(
    model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First while the new session opens, then while the old one opens again."""
    monkeypatch.setattr(open_model, "SpecSession", interrupted(2))
    with pytest.raises(KeyboardInterrupt):
        model.redraft("none")
    with pytest.raises(KeyboardInterrupt):
        answer(model)
    assert answer(model) == ":abcd"
    assert model.drafter == "n-grams"


def test_draft_command_expands_the_home_folder(
    model: OpenModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    chat = Chat(model, None, {}, interactive=True, colored=False)
    with pytest.raises(ModelError, match=str(tmp_path / "none.gguf")):
        commands.execute(chat, "/draft ~/none.gguf")
