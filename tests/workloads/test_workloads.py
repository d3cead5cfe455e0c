"""The texts to replay have their stated properties; users' files are read."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from folders import ROOT
from specllama import ArgumentError, SpecSession, workloads
from specllama.workloads import Replay

DATA = Path(workloads.__file__).parent

LEAST = {"edit": 24, "quote": 8, "code": 8, "json": 8, "prose": 8}


def grams(text: str, order: int = 4) -> list[tuple[str, ...]]:
    """Return the n-grams of the words and punctuation marks of a text."""
    words = re.findall(r"\w+|[^\w\s]", text)
    return [tuple(words[i : i + order]) for i in range(len(words) - order + 1)]


def share_from_prompt(replays: Sequence[Replay]) -> float:
    """Return the share of the references' 4-grams that are also in their prompts."""
    found = total = 0
    for replay in replays:
        known = set(grams(replay.prompt))
        found += sum(gram in known for gram in grams(replay.reference))
        total += len(grams(replay.reference))
    return found / total


def original(replay: Replay) -> str:
    """Return the function that an edit starts from."""
    return replay.prompt.split("```python\n")[1].split("```")[0]


def function(source: str) -> ast.FunctionDef:
    compile(source, "workload", "exec")
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    return node


def edits(kind: str) -> list[Replay]:
    return [replay for replay in workloads.load("edit") if replay.name.startswith(kind)]


def constants(node: ast.AST) -> list[Any]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]


def test_every_workload_has_its_texts() -> None:
    assert set(workloads.REPLAYED) == set(LEAST)
    for name, least in LEAST.items():
        replays = workloads.load(name)
        assert len(replays) >= least
        assert len({replay.name for replay in replays}) == len(replays)
        assert len({replay.reference for replay in replays}) == len(replays)
        assert {replay.workload for replay in replays} == {name}
        assert all(len(replay.reference) > 300 for replay in replays)
    assert sum(path.stat().st_size for path in DATA.glob("*.jsonl")) < 150_000
    assert "Python Software Foundation" in (DATA / "LICENSE-PSF.txt").read_text(encoding="utf-8")


def test_workloads_differ_in_the_share_found_in_the_prompt() -> None:
    shares = {name: share_from_prompt(workloads.load(name)) for name in LEAST}
    assert shares["edit"] > 0.9
    assert 0.5 < shares["quote"] < 0.85
    assert 0.3 < shares["json"] < 0.7
    assert shares["code"] < 0.1
    assert shares["prose"] < 0.05


def test_prose_workloads_do_not_repeat_themselves() -> None:
    for replay in workloads.load("prose"):
        counts = Counter(grams(replay.reference))
        repeated = 1 - len(counts) / counts.total()
        assert repeated < 0.1, replay.name
        assert share_from_prompt([replay]) < 0.1, replay.name


def test_workload_prompts_fit_the_bundled_model() -> None:
    with SpecSession(n_threads=1, n_gpu_layers=0, n_ctx=256) as session:
        for name in LEAST:
            for replay in workloads.load(name):
                n_tokens = len(session.tokenize(replay.prompt + replay.reference))
                assert n_tokens <= 2048, replay.name


def test_code_workloads_were_held_out_of_training() -> None:
    text = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
    held_out = set(re.findall(r"`([\w/]+)`", text.split("\nHeld out:")[1].split("\n\n")[0]))
    assert "shutil" in held_out
    for name in ("edit", "code"):
        for replay in workloads.load(name):
            module = replay.name.split()[-1].split(".")[0]
            assert module in held_out, replay.name


@pytest.mark.parametrize("kind", ["rename", "argument", "constant", "hints"])
def test_edit_workloads_change_the_function_as_asked(kind: str) -> None:
    assert len(edits(kind)) >= 6
    for replay in edits(kind):
        assert replay.prompt.endswith("The edited function:\n\n```python\n")
        assert replay.reference != original(replay)
        before, after = function(original(replay)), function(replay.reference)
        assert before.name == after.name
        assert 15 <= len(original(replay).splitlines()) <= 63, replay.name
    lengths = sorted(len(replay.reference.splitlines()) for replay in edits(kind))
    assert lengths[0] < 25
    assert lengths[-1] > 40


def test_edit_workloads_alternate_between_kinds_of_edits() -> None:
    """So the first few are a fair sample."""
    kinds = [replay.name.split()[0] for replay in workloads.load("edit")]
    assert all(len(set(kinds[i : i + 4])) == 4 for i in range(0, len(kinds), 4))


def test_rename_edits_rename_only() -> None:
    for replay in edits("rename"):
        old, new = re.findall("`([^`]+)`", replay.prompt.splitlines()[0])
        before, after = function(original(replay)), function(replay.reference)
        n_renamed = 0
        for node in ast.walk(before):
            if isinstance(node, ast.Name):
                assert node.id != new
                if node.id == old:
                    node.id = new
                    n_renamed += 1
        assert n_renamed >= 3
        assert ast.dump(before) == ast.dump(after)


def test_argument_edits_add_an_argument_only() -> None:
    for replay in edits("argument"):
        (added,) = re.findall("`([a-z_]+)`", replay.prompt.splitlines()[0])
        before, after = function(original(replay)), function(replay.reference)
        assert after.args.args.pop().arg == added
        assert after.args.defaults.pop()
        # The argument is used, and only the lines around its uses have changed.
        assert ast.dump(before.args) == ast.dump(after.args)
        assert any(isinstance(node, ast.Name) and node.id == added for node in ast.walk(after))
        kept = set(original(replay).splitlines()) & set(replay.reference.splitlines())
        changed = [line for line in replay.reference.splitlines() if line not in kept]
        assert len(changed) <= 6
        assert any(added in line for line in changed)


def test_constant_edits_change_constants_only() -> None:
    for replay in edits("constant"):
        before, after = function(original(replay)), function(replay.reference)
        old, new = constants(before), constants(after)
        assert len(old) == len(new)
        changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        assert 1 <= len(changed) <= 2
        assert all(type(a) is type(b) for a, b in changed)
        for tree in (before, after):
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant):
                    node.value = None
        assert ast.dump(before) == ast.dump(after)


class WithoutHints(ast.NodeTransformer):
    """Removes the type hints."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.Assign([node.target], node.value)


def test_hint_edits_add_type_hints_only() -> None:
    for replay in edits("hints"):
        before, after = function(original(replay)), function(replay.reference)
        for argument in after.args.args + after.args.kwonlyargs:
            assert argument.annotation is not None or argument.arg == "self"
        assert after.returns is not None
        stripped = WithoutHints().visit(copy.deepcopy(after))
        assert ast.dump(WithoutHints().visit(copy.deepcopy(before))) == ast.dump(before)
        assert ast.dump(stripped) == ast.dump(before)


def test_quote_workloads_are_verbatim() -> None:
    for replay in workloads.load("quote"):
        document = replay.prompt.split("\n---\n")[0]
        lines = [line for line in replay.reference.split("\n") if line]
        quoted = [line[2:] for line in lines if line.startswith("> ")]
        own = [line for line in lines if not line.startswith("> ")]
        assert len(quoted) >= 3
        assert all(line in document for line in quoted)
        assert len(own) >= 3
        assert not any(line in document for line in own)
        assert 0.5 < sum(map(len, quoted)) / len(replay.reference) < 0.9


def test_code_workloads_continue_after_the_docstring() -> None:
    for replay in workloads.load("code"):
        body = ast.parse(replay.prompt + replay.reference).body
        node = body[-1].body[0] if isinstance(body[-1], ast.ClassDef) else body[-1]
        assert isinstance(node, ast.FunctionDef)
        end = node.body[0].end_lineno
        assert ast.get_docstring(node)
        assert end == len(replay.prompt.splitlines())
        assert len(node.body) > 1


def follows(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value follows a JSON schema, for the keywords that the workload uses."""
    if schema["type"] == "object":
        properties = schema["properties"]
        return list(value) == schema["required"] == list(properties) and all(
            follows(value[key], each) for key, each in properties.items()
        )
    if schema["type"] == "array":
        return isinstance(value, list) and all(follows(each, schema["items"]) for each in value)
    types = {"boolean": bool, "integer": int, "number": float, "string": str}
    return type(value) is types[schema["type"]]


def test_json_workloads_continue_valid_records() -> None:
    for replay in workloads.load("json"):
        _, schema, start = replay.prompt.split("```json\n")
        records = json.loads(start + replay.reference)
        shown = json.loads(start + "\n]")
        assert records[: len(shown)] == shown
        assert len(records) - len(shown) >= 6
        assert len({json.dumps(record) for record in records}) == len(records)
        form = json.loads(schema.split("\n```")[0])
        assert all(follows(record, form) for record in records), replay.name


@pytest.mark.skipif(
    sys.version_info[:3] != (3, 11, 7) or importlib.util.find_spec("pydoc_data") is None,
    reason="the workloads were made from the library of CPython 3.11.7",
)
def test_make_py_reproduces_the_workload_files(tmp_path: Path) -> None:
    script = ROOT / "tools" / "workloads" / "make.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True)
    for name in LEAST:
        made = (tmp_path / f"{name}.jsonl").read_bytes()
        assert made == (DATA / f"{name}.jsonl").read_bytes(), name


def test_generated_workloads_have_their_prompts() -> None:
    generated = {"copy": workloads.COPY, "free": workloads.FREE}
    assert generated == workloads.WORKLOADS


def test_unknown_workloads_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match="There is no replayed workload 'poems'; choose one of "
    ):
        workloads.load("poems")


def test_replay_files_are_read_from_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    full = {"prompt": "", "reference": "é\n", "name": "n", "workload": "w", "more": [1]}
    path.write_bytes(
        b'\xef\xbb\xbf{"prompt": "a", "reference": "b"}\r\n\n' + json.dumps(full).encode()
    )
    assert workloads.read_jsonl(path) == [
        Replay("a", "b", "mine 1", "mine"),
        Replay("", "é\n", "n", "w"),
    ]
    assert workloads.read_jsonl(str(path)) == workloads.read_jsonl(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", ", line 2 is not JSON."),
        (b"[" * 100_000, ", line 2 is not JSON."),
        (b'{"prompt": "\xff"}', ", line 2 is not UTF-8."),
        (b'["a", "b"]', ', line 2 must be an object with "prompt" and "reference".'),
        (b'{"prompt": "a"}', ', line 2 has no "reference".'),
        (b'{"reference": "a"}', ', line 2 has no "prompt".'),
        (b'{"prompt": 1, "reference": "b"}', ', line 2: "prompt" must be a str, not int.'),
        (b'{"prompt": "a", "reference": ""}', ', line 2: "reference" must not be empty.'),
        (b'{"prompt": "\\ud800", "reference": "b"}', ', line 2: "prompt" has a lone surrogate'),
        (b'{"prompt": "a", "reference": "b", "name": null}', ', line 2: "name" must be a str'),
        (b'{"prompt": 1' + b"0" * 5000 + b"}", ", line 2"),
    ],
)
def test_malformed_lines_of_replay_files_are_refused(
    line: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"prompt": "a", "reference": "b"}\n' + line + b"\n")
    with pytest.raises(ArgumentError) as caught:
        workloads.read_jsonl(path)
    assert f"{path}{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_replay_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"none\.jsonl cannot be read: No such file"):
        workloads.read_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        workloads.read_jsonl(tmp_path)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(ArgumentError, match=r"empty\.jsonl has no text; "):
        workloads.read_jsonl(tmp_path / "empty.jsonl")
    with pytest.raises(ArgumentError, match="cannot be read: it is not a path"):
        workloads.read_jsonl("a\0b")
