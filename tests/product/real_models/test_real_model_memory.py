"""The KV memory of published models: windows, states, several requests, huge pages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from near_ties import tie
from real_models import (
    copying_prompt,
    endless,
    forget,
    near,
    real_model,
)
from session_options import Open
from specllama import ArgumentError

pytestmark = pytest.mark.slow


def numbered(count: int) -> str:
    return "".join(f"{i}. The train number {i * 7 % 100} is late.\n" for i in range(count))


@pytest.mark.parametrize("exact", [False, True])
def test_prompts_that_have_left_a_sliding_window_are_decoded_again(
    open_real: Open, exact_copy: Callable[[str], Path], exact: bool
) -> None:
    """The prompts share a part of a text three times as long as the window of Gemma 3. What has
    left the memory is decoded again; an exact session keeps the whole text."""
    model: str | Path = exact_copy("gemma") if exact else "gemma"
    session = open_real(model, "ngram", exact=exact)
    alone = open_real(model, exact=exact)
    limit = 0.0 if exact else near(open_real, "gemma")[0]
    text = session.tokenize(numbered(145))
    assert len(text) > 3 * 512
    options: dict[str, Any] = {"max_tokens": 24, "logprobs": 100}
    session.generate(text, **options)
    for keep, is_there in ((len(text) - 3, True), (700, exact), (20, True)):
        prompt = [*text[:keep], *session.tokenize("\nBut then ", add_special=False)]
        found = session.generate(prompt, **options)
        assert found.stats.reused_tokens == (keep if is_there else 0)
        forget(alone)
        expected = alone.generate(prompt, **options)
        distance = tie(expected, found.tokens)
        assert distance is None or distance < limit


def test_a_dropped_long_answer_keeps_the_reusable_prefix(open_real: Open) -> None:
    """The answer, like a long thought, has moved the windows of Gemma 3. Other conversations
    alternate with this one."""
    session = open_real("gemma", "ngram", cache_ram=-1, n_batch=128)
    alone = open_real("gemma", n_batch=128)
    limit = near(open_real, "gemma")[0]
    text = session.tokenize(numbered(60))
    bias = endless(session, "gemma")
    for turn in range(2):
        session.generate(text, max_tokens=700, logit_bias=bias)
        session.generate(f"{turn}: " + numbered(20), max_tokens=8)
        n_before = len(text)
        text += session.tokenize(f"\nWhat about number {turn}?", add_special=False)
        found = session.generate(text, max_tokens=24, logit_bias=bias)
        assert n_before - 4 <= found.stats.reused_tokens < n_before
        forget(alone)
        expected = alone.generate(text, max_tokens=24, logprobs=100, logit_bias=bias)
        distance = tie(expected, found.tokens)
        assert distance is None or distance < limit


@pytest.mark.parametrize("name", ["qwen-0.5b", "gemma", "smollm2"])
def test_real_models_continue_saved_states(open_real: Open, tmp_path: Path, name: str) -> None:
    session = open_real(name, "ngram")
    limit, _ = near(open_real, name)
    prompt = copying_prompt(session, name)
    start = session.generate(prompt, max_tokens=8)
    session.save_state(tmp_path / "state")
    longer = [*prompt, *start.tokens]
    expected = session.generate(longer, max_tokens=16, logprobs=100)
    other = open_real(name, "ngram", ngram_order=3)
    other.generate("Something else.", max_tokens=2)
    other.load_state(tmp_path / "state")
    found = other.generate(longer, max_tokens=16)
    assert found.stats.reused_tokens >= len(longer) - 2
    distance = tie(expected, found.tokens)
    assert distance is None or distance < limit
    if name != "smollm2":
        with pytest.raises(ArgumentError, match="another model"):
            open_real("smollm2", "ngram").load_state(tmp_path / "state")


def test_three_requests_at_once_answer_correctly(open_real: Open) -> None:
    session = open_real("qwen-0.5b", "ngram", n_seq=3)
    asked = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Spain": "Madrid"}
    prompts = [
        session.render_chat([{"role": "user", "content": f"What is the capital of {name}?"}])
        for name in asked
    ]
    answers = session.generate(prompts, max_tokens=20)
    assert len(answers) == 4
    for answer, city in zip(answers, asked.values(), strict=True):
        assert city in answer.text
        assert answer.stats.drafter_errors == 0
    assert max(answer.stats.reused_tokens for answer in answers) > 20  # they begin alike
    choices = session.generate("The sea is", n=3, temperature=1.0, seed=1, max_tokens=12).choices
    assert len({choice.text for choice in choices}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_repacked_weights_use_huge_pages_if_available() -> None:
    given = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not given.exists() or "[never]" in given.read_text():
        pytest.skip("There are no huge pages on this machine.")
    count = (
        "import re, sys, specllama; from pathlib import Path\n"
        "session = specllama.SpecSession(sys.argv[1], None, n_gpu_layers=0, n_ctx=256)\n"
        "maps = Path('/proc/self/smaps_rollup').read_text()\n"
        "found = re.search(r'AnonHugePages: +([0-9]+)', maps)\n"
        "print(session.cpu_kernels, found[1], sep='|')\n"
    )
    command = [sys.executable, "-c", count, str(real_model("qwen-1.5b"))]
    kernels, kilobytes = subprocess.check_output(command, text=True).strip().split("|")
    if "repacked" not in kernels:
        pytest.skip(f"No weights are repacked on this machine: {kernels}.")
    assert int(kilobytes) > 100_000
