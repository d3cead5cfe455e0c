"""The examples in the documents run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from folders import ROOT

EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("i", range(len(EXAMPLES)))
def test_examples_of_the_python_docs_run(
    i: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[i], "docs/python.md", "exec"), {})


def test_python_docs_have_examples() -> None:
    assert len(EXAMPLES) > 2
