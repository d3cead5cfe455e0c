"""Models that do not fit on the devices: which layers stay in main memory.

The devices are RPC servers on loopback that report little memory.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from any_model import architectures
from any_model import write as write_any
from c_library import compiled, needs_compiler, run_with
from heads import write_perfect_pair, write_qwen
from prompts import PROMPTS, most_tokens
from random_model import write_dense, write_experts
from rpc_worker import Worker, has_rpc
from session_options import EXACT, FIXED, Open
from specllama import ArgumentError, SpecSession
from specllama.commands.spec_cli import executable
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

on_little_devices = [
    pytest.mark.skipif(
        not has_rpc(), reason="llama.cpp was built without RPC (make test-rpc builds it)"
    ),
    needs_compiler,
]
OPTIONS: dict[str, Any] = {"kv_type": "q8_0", "flash_attn": True, "n_threads": 1} | FIXED

LOAD = """
import sys
from specllama import SpecSession, _core
_core.set_verbose(True)
options = eval(sys.argv[3])
session = SpecSession(sys.argv[1], rpc=sys.argv[2], n_threads=1, spec_length=4, **options)
_core.set_verbose(False)
print(len(session.generate([1, 5], max_tokens=4).tokens))
session.close()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("little_device", tmp_path_factory.mktemp("library"))


@contextmanager
def devices(library: Path, *mebibytes: int) -> Iterator[str]:
    """Start servers with so many MiB of memory each; yield their addresses for `rpc`."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(Worker(LD_PRELOAD=str(library), LITTLE_DEVICE=str(one)))
            for one in mebibytes
        ]
        yield ",".join(worker.endpoint for worker in started)


def said(model: Path, rpc: str, **options: Any) -> str:
    """Return the output of opening a session, with llama.cpp's log."""
    run = subprocess.run(
        [sys.executable, "-c", LOAD, str(model), rpc, repr({"draft": None} | options)],
        capture_output=True,
        errors="replace",
        check=True,
    )
    assert int(run.stdout) > 0
    return run.stderr


def taken(log: str, server: str = "") -> float:
    """Return the MiB that llama.cpp has allocated on one server, or on all."""
    found = re.findall(rf"\[{server}\S*\] .*buffer size = +([\d.]+) MiB", log)
    return sum(float(mib) for mib in found)


def notice(log: str) -> str:
    """Return specllama's own line (\"\": none)."""
    found = re.findall(r"^specllama: (.*)$", log, re.MULTILINE)
    assert len(found) <= 1, found
    return found[0] if found else ""


def test_bad_n_cpu_moe_is_refused() -> None:
    for wrong, message in ((-1, "n_cpu_moe must be 0 or more, not -1."), ("all", "n_cpu_moe must")):
        with pytest.raises(ArgumentError, match=message):
            SpecSession(n_cpu_moe=wrong)
    run = subprocess.run(
        [executable(), "-p", "x", "-ncmoe", "-1"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.endswith("-ncmoe must be 0 or more, not -1.\n")
    assert run.stderr.count("\n") == 1


def test_n_cpu_moe_changes_nothing_without_a_device(tmp_path: Path, open_session: Open) -> None:
    model = write_experts(tmp_path / "model.gguf")
    expected, tokens = (
        open_session(model, n_cpu_moe=n).generate([1, 5], max_tokens=8).tokens for n in (None, 9)
    )
    assert tokens == expected


class TestDevices:
    pytestmark = on_little_devices

    def test_as_many_layers_as_fit_go_to_the_device(self, library: Path) -> None:
        """They use no more memory than the device has, and leave a part of it free."""
        counts = []
        for mib in (10, 16, 18, 20, 22, 24, 26, 28, 30, 32, 64):
            with devices(library, mib) as rpc:
                log = said(BUNDLED_MODEL, rpc, n_ctx=2048)
            (offloaded,) = re.findall(r"offloaded (\d)/7 layers", log)
            counts.append(int(offloaded))
            assert taken(log) <= mib * 15 / 16
            n = 7 - int(offloaded)
            first = "the first" if n == 1 else f"the first {n}"
            layers = f"{first} of its 6 layers {'stays' if n == 1 else 'stay'}"
            what = "all of it stays" if n == 7 else layers
            assert notice(log) == (
                f"Not all of the model fits into the {mib} MiB that RPC0 has free: {what} in main "
                "memory."
                if n > 0
                else ""
            )
        assert counts == sorted(counts)
        assert (counts[0], counts[-1]) == (0, 7)
        assert len(set(counts)) > 4

    @pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["plain", "n", "model"])
    def test_a_divided_model_generates_the_same_tokens(
        self, draft: Any, library: Path, open_session: Open, capfd: pytest.CaptureFixture[str]
    ) -> None:
        local = open_session(draft=None)
        with (
            devices(library, 24) as rpc,
            SpecSession(BUNDLED_MODEL, draft, rpc=rpc, n_ctx=2048, **OPTIONS) as session,
        ):
            assert "of its 6 layers stay" in capfd.readouterr().err
            for prompt in PROMPTS.values():
                n = most_tokens(local, prompt, 40)
                expected = local.generate(prompt, max_tokens=n).tokens
                assert session.generate(prompt, max_tokens=n).tokens == expected

    def test_experts_are_the_first_to_stay_in_main_memory(
        self, tmp_path: Path, library: Path, open_session: Open
    ) -> None:
        """Experts of the first layers, as few as possible; whole layers only if that is not
        enough."""
        model = write_experts(tmp_path / "model.gguf", 6, 48)
        expected = open_session(model, None).generate([1, 5], max_tokens=30).tokens
        counts = []
        for mib in (32, 28, 24, 20, 16):
            with devices(library, mib) as rpc:
                log = said(model, rpc, n_ctx=1024)
                with SpecSession(model, "ngram", rpc=rpc, n_ctx=1024, **OPTIONS) as session:
                    assert session.generate([1, 5], max_tokens=30).tokens == expected
            stays = re.findall(r"tensor blk\.(\d)\.ffn_(?:up|down|gate)_exps\S+ .* to CPU", log)
            n = len({*stays})
            counts.append(n)
            assert stays == sorted(stays)
            assert {*stays} == {str(i) for i in range(n)}
            assert "offloaded 7/7 layers" in log
            assert taken(log) <= mib
            assert ("the experts of the first" in notice(log)) is (n > 0)
            if n > 1:
                assert f"the experts of the first {n} of its 6 layers stay" in notice(log)
        assert counts == sorted(counts)
        assert counts[0] == 0
        assert len(set(counts)) > 3

        with devices(library, 6) as rpc:
            log = said(model, rpc, n_ctx=512)
        assert re.search(
            r": the first \d of its 6 layers and the experts of others stay in", notice(log)
        )

    def test_explicit_numbers_of_layers_and_experts_are_kept(
        self, tmp_path: Path, library: Path
    ) -> None:
        model = write_experts(tmp_path / "model.gguf", 6, 8)
        with devices(library, 1000) as rpc:
            log = said(model, rpc, n_cpu_moe=4)
            assert {*re.findall(r"tensor blk\.(\d)\.\S+ .* to CPU", log)} == {*"0123"}
            assert notice(log) == ""
            log = said(model, rpc, n_gpu_layers=3)
            assert "offloaded 3/7 layers" in log
            assert "overridden" not in log
        # A model without experts ignores n_cpu_moe.
        with devices(library, 24) as rpc:
            log = said(BUNDLED_MODEL, rpc, n_ctx=2048, n_cpu_moe=2)
        assert re.search(r": the first \d of its 6 layers stay in", notice(log))
        # With n_cpu_moe=0 the experts do not stay, so layers do.
        model = write_experts(tmp_path / "model.gguf", 6, 48)
        with devices(library, 22) as rpc:
            log = said(model, rpc, n_ctx=1024, n_cpu_moe=0)
        assert re.search(r": the first( \d)? of its 6 layers stays? in", notice(log))
        assert "overridden" not in log

    def test_two_devices_take_as_many_experts_as_they_hold(
        self, tmp_path: Path, library: Path, open_session: Open
    ) -> None:
        """Experts stay on the first device although the second is full."""
        model = write_experts(tmp_path / "model.gguf", 12, 48)
        expected = open_session(model, None).generate([1, 5], max_tokens=20).tokens
        for mib in (17, 14, 12):
            with devices(library, mib, mib) as rpc:
                log = said(model, rpc, n_ctx=1024, n_batch=64)
                used = [taken(log, server) for server in rpc.split(",")]
                with SpecSession(model, None, rpc=rpc, n_ctx=1024, n_batch=64, **OPTIONS) as one:
                    assert one.generate([1, 5], max_tokens=20).tokens == expected
            assert all(mib / 2 < one <= mib for one in used)
            assert "the experts of the first" in notice(log)

    def test_layers_are_split_as_requested(self, library: Path) -> None:
        def layers(split: list[float]) -> list[int]:
            with devices(library, 500, 500) as rpc:
                log = said(BUNDLED_MODEL, rpc, n_ctx=512, tensor_split=split)
            places = re.findall(r"layer +\d assigned to device RPC(\d)", log)
            return [places.count("0"), places.count("1")]

        assert layers([5, 2]) == [5, 2]
        assert layers([0, 1]) == [0, 7]
        assert layers([0.3]) == [7, 0]
        with devices(library, 500) as rpc:
            for split, message in (
                ([1, 2], "tensor_split has 2 numbers; there are 1 devices."),
                ([0], "tensor_split must have numbers of at least 0, not all of them 0."),
                ([-1], "tensor_split must have numbers of at least 0"),
                ("1,2", "tensor_split must be a list of numbers"),
                (["x"], "tensor_split must be a number"),
            ):
                with pytest.raises(ArgumentError, match=message):
                    SpecSession(rpc=rpc, tensor_split=split)
            flags = ["-p", "x", "-n", "1", "-t", "1", "--rpc", rpc, "-ts"]
            for value, code, message in (
                ("1", 0, ""),
                ("1,x", 2, 'needs numbers with commas between them, not "x"'),
                ("", 2, 'needs numbers with commas between them, not ""'),
                ("1,1", 2, "-ts has 2 numbers; there are 1 devices."),
            ):
                run = subprocess.run(
                    [executable(), *flags, value], capture_output=True, text=True, check=False
                )
                assert run.returncode == code
                assert message in run.stderr
                assert run.stderr.count("\n") == (code > 0)

    @pytest.mark.parametrize("name", ["gpt-oss", "qwen35moe"])
    def test_layers_with_larger_kv_memory_count_more(
        self, name: str, tmp_path: Path, library: Path
    ) -> None:
        """In models with sliding windows or states, a few layers need nearly all of the KV
        memory."""
        model = write_any(tmp_path / "model.gguf", name, architectures()[name])
        offloaded = set()
        for mib in (6, 9, 12, 15, 18, 30):
            with devices(library, mib) as rpc:
                log = said(model, rpc, n_ctx=1 << 14, n_batch=64, kv_type="q8_0")
            assert taken(log) <= mib
            offloaded.update(re.findall(r"offloaded (\d+)/", log))
        assert len(offloaded) > 1

    def test_mtp_layers_count_with_their_own_kv_memory(self, tmp_path: Path, library: Path) -> None:
        """Only if they draft; otherwise they are not loaded."""
        model = write_qwen(tmp_path / "model.gguf", context_length=1 << 15)
        least = {}
        for draft in (None, "mtp"):
            for mib in (80, 64, 48, 28, 20, 12):
                with devices(library, mib) as rpc:
                    log = said(model, rpc, draft=draft, n_ctx=1 << 15, n_batch=64)
                assert taken(log) <= mib
                if notice(log) == "":
                    least[draft] = mib
        assert 12 < least[None] < least["mtp"] < 80

    def test_two_devices_each_get_a_part_of_the_model(self, library: Path) -> None:
        for pair in ((20, 20), (22, 18), (18, 28)):
            with devices(library, *pair) as rpc:
                log = said(BUNDLED_MODEL, rpc, n_ctx=2048)
            for server, mib in zip(rpc.split(","), pair, strict=True):
                assert 0 < taken(log, server) <= mib
            assert " that RPC0 and RPC1 have free: " in notice(log)

    def test_the_context_is_shortened_before_layers_leave_the_device(
        self, tmp_path: Path, library: Path
    ) -> None:
        """Unless n_ctx is set; down to 4096 tokens."""
        model = write_dense(tmp_path / "model.gguf", 1, 4, context_length=1 << 15)
        with devices(library, 14) as rpc:
            whole = said(model, rpc, n_batch=64)
            assert notice(whole) == "Not enough memory: n_ctx is lowered to 4096."
            assert "offloaded 5/5 layers" in whole
            given = said(model, rpc, n_ctx=8192, n_batch=64)
            assert "of its 4 layers" in notice(given)
        with devices(library, 8) as rpc:
            log = said(model, rpc, n_batch=64)
        assert "specllama: Not enough memory: n_ctx is lowered to 4096.\n" in log
        assert "of its 4 layers stay in main memory.\n" in log

    def test_a_head_is_placed_with_its_target(
        self, tmp_path: Path, library: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        target, head = write_perfect_pair(tmp_path, shares=True)
        with SpecSession(target, None, **EXACT) as local:
            expected = local.generate("\n", max_tokens=20).tokens
        for sizes in ((1,), (8,), (10,), (1000,), (8, 8), (12, 12)):
            with devices(library, *sizes) as rpc:
                log = said(target, rpc, draft=str(head), n_batch=64)
                for server, mib in zip(rpc.split(","), sizes, strict=True):
                    assert taken(log, server) <= mib
                capfd.readouterr()
                with SpecSession(target, head, rpc=rpc, **OPTIONS) as session:
                    generation = session.generate("\n", max_tokens=20)
            assert ("all of it stays" in capfd.readouterr().err) is (sizes == (1,))
            assert generation.tokens == expected
            assert generation.stats.accepted > 0

    def test_models_that_fit_nowhere_are_refused(self, tmp_path: Path, library: Path) -> None:
        program = (
            "import sys\n"
            "from specllama import OutOfMemoryError, SpecSession\n"
            "try:\n"
            "    SpecSession(None, 'ngram', rpc=sys.argv[1], n_ctx=2048)\n"
            "except OutOfMemoryError as error:\n"
            "    print(error)\n"
        )
        little = compiled("little_memory", tmp_path)
        memory = tmp_path / "meminfo"
        memory.write_text("MemTotal: 9999999 kB\nMemAvailable: 4096 kB\n")
        with devices(library, 12) as rpc:
            refused = run_with(little, program, rpc, LITTLE_MEMORY=str(memory))
        # A model that only just fits is accepted, though a part of the device should stay free.
        with devices(library, 33) as rpc:
            assert run_with(little, program, rpc, LITTLE_MEMORY=str(memory)) == ""
        assert re.fullmatch(
            r"The model needs \d+ MiB \(weights \d+ MiB, KV memory for 2048 tokens \d+ MiB, "
            r"computing \d+ MiB\), but RPC0 has 12 MiB and main memory 4 MiB free; lower n_ctx or "
            r"n_batch, or use a smaller model\.\n",
            refused,
        )
