"""The table of architectures, compared with llama.cpp's source if it is available.

LLAMA_SOURCE_DIR names a source tree of the version that pyproject.toml pins.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from folders import ROOT

TABLE = ROOT / "csrc/gguf/architecture/architectures.cpp"
ROWS = re.findall(r'Architecture\{\s*\.name = "([^"]+)"([^;]*?)\},\n', TABLE.read_text())


@pytest.fixture(scope="module")
def llama_source() -> Path:
    tree = os.environ.get("LLAMA_SOURCE_DIR")
    if not tree:
        pytest.skip("LLAMA_SOURCE_DIR does not name llama.cpp's source")
    return Path(tree) / "src"


def names_in(source: Path) -> dict[str, str]:
    """Return the name in model files of each constant, which is given without LLM_ARCH_."""
    text = (source / "llama-arch.cpp").read_text()
    return dict(re.findall(r'\{ LLM_ARCH_(\w+),\s*"([^"]+)"', text))


def test_no_architecture_has_two_rows_in_the_table() -> None:
    names = [name for name, _ in ROWS]
    assert len(names) > 40
    assert len(set(names)) == len(names)


def test_every_row_of_the_table_is_an_architecture_of_llama_cpp(llama_source: Path) -> None:
    known = set(names_in(llama_source).values())
    assert {name for name, _ in ROWS} <= known


def rows_with(column: str) -> set[str]:
    return {name for name, rest in ROWS if f".{column}" in rest}


def graphs(source: Path) -> dict[str, str]:
    """Return the source text of the files that build each architecture's graphs."""
    models = (source / "llama-model.cpp").read_text()
    headers = "".join(path.read_text() for path in (source / "models").glob("*.h"))
    bases = dict(re.findall(r"struct (llama_model_\w+) : public (llama_model_\w+)", headers))
    shared = {}
    for one in headers.split("\nstruct ")[1:]:
        if found := re.search(r"using graph = (llama_model_\w+)::", one):
            shared[one.split()[0]] = found[1]
    files = [path.read_text() for path in (source / "models").glob("*.cpp")]
    texts = {}
    for constant, name in names_in(source).items():
        case = rf"case LLM_ARCH_{constant}:(?:\s*case \w+:)*\s*return new (\w+)"
        if made := re.search(case, models):
            classes = {made[1], bases.get(made[1]), shared.get(made[1])}
            own = [t for t in files if any(f"{one}::graph" in t for one in classes if one)]
            texts[name] = "".join(own)
    return texts


def test_snapshots_of_the_table_are_those_of_llama_cpp(llama_source: Path) -> None:
    text = (llama_source / "llama-arch.cpp").read_text()
    body = text[text.index("bool llm_arch_supports_rs_rollback") :]
    body = body[: body.index("return true;")]
    names = names_in(llama_source)
    keeps = {names[constant] for constant in re.findall(r"LLM_ARCH_(\w+)", body)}
    assert rows_with("snapshots = true") == keeps


def test_layer_inputs_of_the_table_are_those_of_llama_cpps_graphs(
    llama_source: Path,
) -> None:
    gives = {name for name, text in graphs(llama_source).items() if "t_layer_inp[il]" in text}
    # One has inputs wider than its states, which llama.cpp asserts; one generates no text.
    gives -= {"qwen4exp", "llama-embed"}
    assert rows_with("layer_inputs = true") == gives
    last = {name for name, text in graphs(llama_source).items() if "t_layer_inp[n_layer]" in text}
    assert rows_with("last_output = true") == last


def test_mtp_entries_of_the_table_are_those_that_llama_cpp_has_graphs_for(
    llama_source: Path,
) -> None:
    single, chains, crops = set(), set(), set()
    for path in (llama_source / "models").glob("*.cpp"):
        text = path.read_text()
        made = re.search(r"(llama_model_\w+)::graph_mtp::graph_mtp", text)
        if not made:
            continue
        graph = text[made.start() :]
        case = rf"case LLM_ARCH_(\w+):\s*return new {made[1]}\(".replace("graph_mtp", "")
        constant = re.search(case, (llama_source / "llama-model.cpp").read_text())
        assert constant, path
        name = names_in(llama_source)[constant[1]]
        (single if "n_layer_nextn == 1" in graph else chains).add(name)
        before = graph[: graph.index("t_h_nextn")]
        crop = re.search(r"if \((\w+)\) \{\s*cur = ggml_get_rows", before)
        if "inp_out_ids);" in before.replace("build_inp_out_ids();", "") and not (
            crop and crop[1].startswith("crop")
        ):
            crops.add(name)
    assert rows_with("mtp = Mtp::one") == single
    assert rows_with("mtp = Mtp::chain") == chains
    assert rows_with("mtp_crops = true") == crops
