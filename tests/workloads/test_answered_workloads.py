"""The conversations to answer have their stated properties; users' files are read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
from specllama import ArgumentError, workloads
from specllama.workloads import Dialogue, Half

DATA = Path(workloads.__file__).parent


def said(dialogue: Dialogue) -> str:
    return "\n".join(message["content"] for message in dialogue.messages)


def code_of(dialogue: Dialogue) -> tuple[str, str]:
    """Return the language and the text of the given code."""
    language, _, code = said(dialogue).split("```")[1].partition("\n")
    return language, code


def test_every_answered_workload_has_its_conversations() -> None:
    assert {path.stem for path in (DATA / "answered").iterdir()} == set(workloads.ANSWERED)
    names, contents = Counter[str](), Counter[str]()
    for name in workloads.ANSWERED:
        dialogues = workloads.load_answered(name)
        assert len(dialogues) >= 6
        tuning, held_out = (workloads.load_answered(name, half) for half in get_args(Half))
        assert tuning + held_out == dialogues
        assert len(tuning) == len(dialogues) // 2
        names.update(f"{name} {one.name}" for one in dialogues)
        for one in dialogues:
            assert one.workload == name
            roles = [message["role"] for message in one.messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
            assert (len(roles) >= 3) == (name == "chat")
            contents.update(message["content"] for message in one.messages)
    for counts in (names, contents):
        assert max(counts.values()) == 1


def test_no_two_answered_conversations_share_a_passage() -> None:
    """They are sixty different texts, not one with other names."""
    seen: dict[tuple[str, ...], str] = {}
    for name in workloads.ANSWERED:
        for one in workloads.load_answered(name):
            words = said(one).split()
            for gram in (tuple(words[i : i + 8]) for i in range(len(words) - 7)):
                assert seen.setdefault(gram, one.name) == one.name, gram


def test_answered_conversations_are_clean_text() -> None:
    for name in workloads.ANSWERED:
        raw = (DATA / "answered" / f"{name}.jsonl").read_bytes()
        assert raw.endswith(b"}\n")
        assert b"\r" not in raw
        for one in workloads.load_answered(name):
            for message in one.messages:
                text = message["content"]
                assert text == text.strip()
                assert text.count("```") % 2 == 0
                signs = {sign for sign in text if not sign.isascii()}
                assert all(sign.isalpha() or sign in "°²§→" for sign in signs), signs


def test_answered_code_conversations_cover_all_languages() -> None:
    languages = {"python", "javascript", "c", "sql", "yaml", "toml"}
    found = set()
    for name in ("fix", "rename"):
        for one in workloads.load_answered(name):
            if one.name.startswith("markdown"):
                continue
            language, code = code_of(one)
            assert one.name.startswith(language)
            assert 12 <= len(code.splitlines()) <= 80, one.name
            found.add(language)
            if language == "python":
                compile(code, one.name, "exec")
    assert found == languages
    assert all("```" not in said(one) for one in workloads.load_answered("write"))


def test_the_code_to_fix_has_the_described_bug() -> None:
    """The first text to fix has the bug that its user describes."""
    scope: dict[str, Any] = {}
    exec(code_of(workloads.load_answered("fix")[0])[1], scope)
    assert scope["moving_average"]([1, 2, 3, 4], 2) == [1.5, 3.0]


def test_the_readme_of_answered_workloads_has_the_right_counts() -> None:
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for name in workloads.ANSWERED:
        lengths = [len(said(one).split()) for one in workloads.load_answered(name)]
        row = f"| {name} | {len(lengths)} | {min(lengths)} to {max(lengths)} | "
        assert row in text, row


def test_answered_passages_have_their_stated_length() -> None:
    for name, low, high in (("summarise", 200, 400), ("documents", 200, 600)):
        for one in workloads.load_answered(name):
            assert low <= len(said(one).split()) <= high, one.name


def test_unknown_answered_workloads_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match="There is no answered workload 'poems'; choose one of "
    ):
        workloads.load_answered("poems")
    half: Any = "best"
    with pytest.raises(
        ArgumentError, match="There is no half 'best'; choose one of tuning, held-out"
    ):
        workloads.load_answered("fix", half)


def test_answered_dialogues_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    system, user = ({"role": role, "content": role} for role in ("system", "user"))
    more = {"name": "n", "workload": "w", "messages": [system, user | {"date": 1}], "more": 1}
    path.write_text(json.dumps(more))
    assert workloads.read_dialogues(path) == [Dialogue((system, user), "n", "w")]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([], ' must be an object with "name" and "workload".'),
        ({"name": "n", "workload": "w"}, ' has no "messages".'),
        ({"workload": "w", "messages": []}, ' has no "name".'),
        ({"messages": "hello"}, ': "messages" must be a list of at least one message.'),
        ({"messages": []}, ': "messages" must be a list of at least one message.'),
        ({"messages": ["hello"]}, ': messages[0] must be like {"role": "user", "content"'),
        ({"messages": [{"role": "user"}]}, ': messages[0] must be like {"role": "user", "con'),
        ({"messages": [{"role": "user", "content": 1}]}, ": messages[0] content must be a str"),
        ({"messages": [{"role": "user", "content": ""}]}, ": messages[0] content must not be em"),
        ({"messages": [{"role": "critic", "content": "a"}]}, ": user and assistant must take"),
        ({"messages": [{"role": "system", "content": "a"}]}, ": user and assistant must take"),
        ({"messages": [{"role": ["user"], "content": "a"}] * 2}, ": user and assistant must"),
    ],
)
def test_malformed_conversations_in_answered_workload_files_are_refused(
    entry: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    if isinstance(entry, dict) and "workload" not in entry:
        entry = {"name": "n", "workload": "w", **entry}
    path.write_text("\n" + json.dumps(entry))
    with pytest.raises(ArgumentError) as caught:
        workloads.read_dialogues(path)
    assert f"{path}, line 2{message}" in str(caught.value)
    assert "\n" not in str(caught.value)
