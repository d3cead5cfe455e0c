"""The block drafter that models/ trains, written as GGUF: llama.cpp drafts the same as PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import random_model
from folders import MODELS
from random_model import EOS, HEAD, N_VOCAB, WIDTH, dense_model
from session_options import Open
from specllama import RoundTrace

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

PROMPT = [1, *range(5, 40), *range(80, 50, -3)]
TOLERANCE = 0.01


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `block` and its imports; matrices are multiplied in float32."""
    monkeypatch.syspath_prepend(MODELS)
    import block
    import export
    import network

    monkeypatch.setattr(network, "MATRIX_TYPE", torch.float32)
    return block, export, network


def randomised(drafter: Any) -> Any:
    """Randomise everything that training changes."""
    torch.manual_seed(2)
    with torch.no_grad():
        for name, parameter in drafter.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif name.startswith("markov"):
                parameter.normal_(std=0.5)
            elif name.startswith("fc"):
                parameter.normal_(std=0.1)
    return drafter.eval()


@pytest.mark.slow
@pytest.mark.parametrize("n_known", [None, 40])
@pytest.mark.parametrize("n_heads_kv", [1, 2])
def test_llama_cpp_drafts_what_the_network_drafts(
    tmp_path: Path,
    open_session: Open,
    modules: Any,
    monkeypatch: pytest.MonkeyPatch,
    n_known: int | None,
    n_heads_kv: int,
) -> None:
    """With all tokens or a reduced vocabulary; with separate or shared key and value heads."""
    block, export, network = modules
    monkeypatch.setattr(random_model, "FLOATS", ("weight",))
    model = dense_model(seed=1)
    model.tensors["output.weight"][EOS] = 0
    for name in (f"blk.{layer}.attn_{kind}.weight" for layer in range(2) for kind in "kv"):
        model.tensors[name] = model.matrix(n_heads_kv * HEAD, WIDTH)
    facts = {"rope.dimension_count": HEAD, "attention.head_count_kv": n_heads_kv}
    path = model.write(tmp_path / "target.gguf", "llama", 2, facts)

    target = network.load_gguf(path)
    known = None if n_known is None else torch.arange(3, 3 + n_known)
    drafter = block.BlockDrafter(target.config, known)
    drafter.begin_with(target)
    randomised(drafter)
    export.export_head(drafter, path, tmp_path / "dspark.gguf", "f32")

    session = open_session(
        path, tmp_path / "dspark.gguf", spec_length=block.BLOCK, kv_type="f32", flash_attn=False
    )
    generation = session.generate(PROMPT, max_tokens=40, trace=True)
    assert generation.stats.drafter_errors == 0
    assert generation.trace is not None
    text = [*PROMPT, *generation.tokens]
    compared = sum(
        compare(one, text[: len(PROMPT) + one.position], target, drafter, block)
        for one in generation.trace.rounds
        if one.draft
    )
    assert compared > 100


@pytest.mark.slow
def test_the_network_begins_as_a_drafter_of_its_targets_sizes(tmp_path: Path, modules: Any) -> None:
    """The same for a drafter read back from its file."""
    block, export, network = modules
    path = random_model.write_dense(tmp_path / "target.gguf", n_layers=3)
    target = network.load_gguf(path)
    drafter = block.BlockDrafter(target.config)
    drafter.begin_with(target)
    export.export_head(drafter, path, tmp_path / "dspark.gguf", "f32")
    again = block.BlockDrafter.load(tmp_path / "dspark.gguf", target.config)
    for name, weight in drafter.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name]), name
    window = torch.randint(3, N_VOCAB, (2, 40))
    divergences = drafter.divergences(target, window)
    assert divergences.shape == (block.BLOCK,)
    assert (divergences > 0).all()
    assert torch.isfinite(drafter.loss(target, window))


def compare(one: RoundTrace, text: list[int], target: Any, drafter: Any, block: Any) -> int:
    """Check a draft after a text; return how many tokens were compared."""
    drafted = [token.token for token in one.draft]
    # The network adds the bias of the draft's own tokens; for it, these are tokens of the text.
    tokens = torch.tensor([[*text, *drafted, *[0] * (block.BLOCK - 1 - len(drafted))]])
    with torch.no_grad():
        _, features = drafter.read(target, tokens)
        logits = drafter.draft(target, tokens, features, torch.tensor([len(text) - 1]))[0, 0]
    rows = drafter.said_of_all(logits).softmax(-1)
    for i, token in enumerate(one.draft):
        best = rows[i].max()
        if token.token != int(rows[i].argmax()):
            assert best - rows[i][token.token] < TOLERANCE
            return i
        assert token.confidence == pytest.approx(float(best), abs=TOLERANCE)
    return len(one.draft)
