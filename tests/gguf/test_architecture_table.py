"""The table of architectures, compared with llama.cpp's source where that is at hand.

LLAMA_SOURCE_DIR names a tree of the version that pyproject.toml pins.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from folders import ROOT

TABLE = ROOT / "csrc/gguf/architectures.cpp"
ROWS = re.findall(r'Architecture\{\.name = "([^"]+)"([^;]*?)\},\n', TABLE.read_text())


@pytest.fixture(scope="module")
def llama_source() -> Path:
    tree = os.environ.get("LLAMA_SOURCE_DIR")
    if not tree:
        pytest.skip("LLAMA_SOURCE_DIR does not name llama.cpp's source")
    return Path(tree) / "src"


def names_in(source: Path) -> dict[str, str]:
    """[constant without LLM_ARCH_]: the name in files."""
    text = (source / "llama-arch.cpp").read_text()
    return dict(re.findall(r'\{ LLM_ARCH_(\w+),\s*"([^"]+)"', text))


def test_no_architecture_has_two_rows() -> None:
    names = [name for name, _ in ROWS]
    assert len(names) > 40
    assert len(set(names)) == len(names)


def test_every_row_is_an_architecture_of_llama_cpp(llama_source: Path) -> None:
    known = set(names_in(llama_source).values())
    assert {name for name, _ in ROWS} <= known


def test_snapshots_of_the_table_are_kept_by_llama_cpp(llama_source: Path) -> None:
    text = (llama_source / "llama-arch.cpp").read_text()
    body = text[text.index("bool llm_arch_supports_rs_rollback") :]
    body = body[: body.index("return true;")]
    names = names_in(llama_source)
    keeps = {names[constant] for constant in re.findall(r"LLM_ARCH_(\w+)", body)}
    assert {name for name, rest in ROWS if ".snapshots = true" in rest} <= keeps


def test_layer_inputs_of_the_table_are_exported_by_llama_cpps_graphs(llama_source: Path) -> None:
    constants = {name: constant for constant, name in names_in(llama_source).items()}
    models = (llama_source / "llama-model.cpp").read_text()
    headers = "".join(path.read_text() for path in (llama_source / "models").glob("*.h"))
    bases = dict(re.findall(r"struct (llama_model_\w+) : public (llama_model_\w+)", headers))
    for name in [name for name, rest in ROWS if ".layer_inputs = true" in rest]:
        constant = rf"case LLM_ARCH_{constants[name]}:"
        made = re.search(constant + r"(?:\s*case \w+:)*\s*return new (\w+)", models)
        assert made, name
        classes = {made[1], bases[made[1]]} - {"llama_model_base"}
        files = [path.read_text() for path in (llama_source / "models").glob("*.cpp")]
        graphs = [text for text in files if any(f"{one}::graph" in text for one in classes)]
        assert any("t_layer_inp" in text for text in graphs), name
