"""A target on llama.cpp's RPC servers: the same tokens, and errors for unreachable servers."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from heads import write_perfect_pair
from prompts import PROMPTS, most_tokens
from rpc_worker import Worker, free_port, has_rpc, workers
from session_options import EXACT, FIXED
from specllama import ArgumentError, ModelError, SpecSession, list_devices
from specllama.commands.spec_cli import executable
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL

with_rpc = pytest.mark.skipif(
    not has_rpc(), reason="llama.cpp was built without RPC (make test-rpc builds it)"
)
PROMPT = PROMPTS["module"]
N_TOKENS = 60
REMOTE: dict[str, Any] = {"kv_type": "q8_0", "flash_attn": True, "n_threads": 1} | FIXED

# A server's answer to HELLO: length of the rest, version (3 bytes), capabilities.
ANSWER = struct.Struct("<QBBBx24x")


def hello() -> bytes:
    return bytes([14]) + struct.pack("<Q24x", 24)


@pytest.fixture
def pair() -> Iterator[str]:
    """Two servers, as an argument for `rpc`."""
    with workers(2) as started:
        yield ",".join(worker.endpoint for worker in started)


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Start a server that sends these bytes to every client and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    connection = server.accept()[0]
                    with connection:
                        connection.recv(64)
                        connection.sendall(answer)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [executable(), *arguments],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("rpc", "message"),
    [
        ("", 'rpc must be "host:port"'),
        ("worker", '"worker" has no port'),
        ("worker:", '"worker:" has no port'),
        (":50052", '":50052" has no host'),
        ("worker:ssh", "a port that is not a number from 1 to 65535"),
        ("worker:0", "a port that is not a number from 1 to 65535"),
        ("worker:65536", "a port that is not a number from 1 to 65535"),
        ("worker:50052x", "a port that is not a number from 1 to 65535"),
        ("[::1]:50052", "has more than one colon"),
        ("worker:1,", '"" has no port'),
        (",", '"" has no port'),
        ("worker:1,worker:2,worker:1", "names the server worker:1 twice"),
    ],
)
def test_bad_lists_of_rpc_servers_are_refused(rpc: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        SpecSession(rpc=rpc)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    process = run(f"--rpc={rpc}", "-p", "x", "-n", "1")
    assert process.returncode == 2
    assert process.stdout == b""
    assert process.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_gpu_layers": 0}, "rpc is given, but n_gpu_layers is 0; leave one of the two out."),
        ({"device": "none"}, 'rpc is given, but device is "none"; leave one of the two out.'),
        ({"exact": True}, "RPC servers are used (rpc)."),
    ],
)
def test_options_that_contradict_rpc_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        SpecSession(rpc="worker:50052", **options)
    assert str(caught.value).endswith(message)


@pytest.mark.skipif(has_rpc(), reason="llama.cpp was built with RPC")
def test_without_rpc_support_the_error_says_how_to_build_it() -> None:
    for ask in (SpecSession, list_devices):
        with pytest.raises(ArgumentError, match='CMAKE_ARGS="-DGGML_RPC=on" pip install') as caught:
            ask(rpc="worker:50052")
        assert "\n" not in str(caught.value)
    process = run("--list-devices", "--rpc", "worker:50052")
    assert process.returncode == 2
    assert b"built without RPC" in process.stderr


@with_rpc
@pytest.mark.parametrize("draft", [None, "ngram", BUNDLED_DRAFT], ids=["plain", "ngram", "model"])
def test_a_target_on_rpc_servers_generates_the_same_tokens(
    draft: Any, pair: str, open_session: Callable[..., SpecSession]
) -> None:
    local = open_session(draft=None)
    n_accepted = 0
    with SpecSession(BUNDLED_MODEL, draft, rpc=pair, **REMOTE) as session:
        for prompt in PROMPTS.values():
            for sampling in ({}, {"temperature": 0.8, "seed": 7}):
                n = most_tokens(local, prompt, N_TOKENS)
                options: dict[str, Any] = {"max_tokens": n, **sampling}
                generation = session.generate(prompt, **options)
                assert generation.tokens == local.generate(prompt, **options).tokens
                assert not generation.stats.exact
                n_accepted += generation.stats.accepted
        assert (n_accepted > 0) is (draft is not None)
        assert session.cpu_kernels == ""  # not those of this machine


@with_rpc
def test_many_requests_with_a_planner_finish_over_rpc(pair: str) -> None:
    prompts = [*PROMPTS.values()]
    options: dict[str, Any] = REMOTE | {"spec_length": "auto"}
    with SpecSession(None, "ngram", rpc=pair, n_seq=4, **options) as session:
        n = min(most_tokens(session, prompt, N_TOKENS) for prompt in prompts)
        together = session.generate(prompts, max_tokens=n)
        assert all(len(one.tokens) > 0 for one in together)
        assert any(seconds > 0 for seconds in together[0].stats.decode_seconds)


@with_rpc
def test_layers_can_be_split_between_this_machine_and_rpc_servers(
    pair: str, open_session: Callable[..., SpecSession]
) -> None:
    expected = open_session(draft=None).generate(PROMPT, max_tokens=N_TOKENS).tokens
    with SpecSession(rpc=pair, n_gpu_layers=1, **REMOTE) as session:
        assert session.generate(PROMPT, max_tokens=N_TOKENS).tokens == expected


@with_rpc
def test_a_head_drafts_on_the_rpc_servers_of_its_target(pair: str, tmp_path: Path) -> None:
    target, head = write_perfect_pair(tmp_path, shares=True)
    with SpecSession(target, None, **EXACT) as local:
        expected = local.generate("\n", max_tokens=20).tokens
    with SpecSession(target, head, rpc=pair, **REMOTE) as session:
        generation = session.generate("\n", max_tokens=20)
    assert generation.tokens == expected
    assert generation.stats.accepted > 0


@with_rpc
def test_sessions_of_a_process_share_rpc_servers(pair: str) -> None:
    """A server accepts one connection at a time; the sessions share it."""
    with SpecSession(rpc=pair, **REMOTE) as one, SpecSession(rpc=pair, **REMOTE) as other:
        assert (
            one.generate(PROMPT, max_tokens=N_TOKENS).tokens
            == other.generate(PROMPT, max_tokens=N_TOKENS).tokens
        )
    # After all are closed, another process can connect.
    process = run("--rpc", pair, "-p", PROMPT, "-n", "4", "-t", "1")
    assert (process.returncode, process.stderr) == (0, b"")


@with_rpc
def test_list_devices_names_the_rpc_servers_given(pair: str) -> None:
    here = [device.name for device in list_devices()]
    devices = list_devices(rpc=pair)
    assert [device.description for device in devices[:2]] == pair.split(",")
    assert [device.name for device in devices[2:]] == here
    assert all(device.memory_free > 0 for device in devices[:2])
    assert [device.name for device in list_devices()] == here  # the RPC devices are gone
    listed = run("--list-devices", "--rpc", pair).stdout.decode()
    assert all(server in listed for server in pair.split(","))
    with SpecSession(rpc=pair, device=devices[1].name, **REMOTE) as session:
        assert len(session.generate(PROMPT, max_tokens=4).tokens) == 4
    with pytest.raises(ArgumentError, match='There is no device "RPC99"; choose from: RPC'):
        SpecSession(rpc=pair, device="RPC99")


def refusal(rpc: str) -> str:
    with pytest.raises(ModelError) as caught:
        SpecSession(rpc=rpc)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@with_rpc
def test_a_missing_rpc_server_is_refused() -> None:
    port = free_port()
    assert refusal(f"127.0.0.1:{port}") == (
        f"The RPC server 127.0.0.1:{port} cannot be reached: Connection refused."
    )
    assert "is not a host with an IPv4 address" in refusal("no-such-host.invalid:50052")
    with Worker() as worker:
        # The error is the same if another server of the list is reachable.
        assert "Connection refused" in refusal(f"{worker.endpoint},127.0.0.1:{port}")
        assert "Connection refused" in refusal(f"127.0.0.1:{port},{worker.endpoint}")
    process = run("--rpc", f"127.0.0.1:{port}", "-p", "x")
    assert (process.returncode, process.stderr.count(b"\n")) == (2, 1)


@with_rpc
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "another program may be listening there"),
        (
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            "another program may be listening there",
        ),
        (ANSWER.pack(28, 6, 0, 0), "uses version 6.0 of the protocol, but this llama.cpp "),
        (struct.pack("<QBBB", 3, 3, 6, 0), "uses version 3.6 of the protocol"),
        (ANSWER.pack(28, 250, 0, 0), "uses version 250.0 of the protocol"),
    ],
    ids=["silence", "http", "older", "much older", "newer"],
)
def test_an_rpc_address_with_another_server_or_version_is_refused(
    answer: bytes, message: str
) -> None:
    with answering(answer) as endpoint:
        assert message in refusal(endpoint)


@with_rpc
def test_a_busy_rpc_server_is_refused_with_its_likely_reason() -> None:
    with Worker() as worker:
        host, _, port = worker.endpoint.partition(":")
        with socket.create_connection((host, int(port))) as other:
            other.sendall(hello())
            assert len(other.recv(ANSWER.size, socket.MSG_WAITALL)) == ANSWER.size
            assert "it may be serving another process" in refusal(worker.endpoint)
        with SpecSession(rpc=worker.endpoint, **REMOTE) as session:
            assert len(session.generate(PROMPT, max_tokens=4).tokens) == 4


@with_rpc
def test_a_restarted_rpc_server_is_used_again() -> None:
    with Worker() as worker, SpecSession(rpc=worker.endpoint, **REMOTE) as session:
        expected = session.generate(PROMPT, max_tokens=8).tokens
        session.close()
        worker.kill()
        assert "Connection refused" in refusal(worker.endpoint)
        worker.start()
        with SpecSession(rpc=worker.endpoint, **REMOTE) as again:
            assert again.generate(PROMPT, max_tokens=8).tokens == expected


LOST = (
    "specllama: An RPC server was lost (of {}): llama.cpp cannot continue without it and ends the "
    "process.\n"
)


@with_rpc
@pytest.mark.parametrize("place", [0, 1])
def test_a_dying_rpc_server_ends_spec_cli_with_a_message(place: int) -> None:
    """llama.cpp ends the process. A message says why, and the text so far is kept."""
    with workers(2) as started:
        names = ",".join(worker.endpoint for worker in started)
        process = subprocess.Popen(
            [executable(), "--rpc", names, "-n", "1500", "-c", "2000", "-t", "1"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.read(20) != b""
        started[place].kill()
        error = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 1
        assert error == LOST.format(", ".join(sorted(names.split(","))))


@with_rpc
def test_a_dying_rpc_server_ends_python_with_a_message() -> None:
    with Worker() as worker:
        program = (
            "from specllama import SpecSession\n"
            f"session = SpecSession(rpc={worker.endpoint!r}, n_threads=1, n_ctx=2000)\n"
            "for chunk in session.stream('x', max_tokens=1500):\n"
            "    print(repr(chunk.text), flush=True)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() != b""
        worker.kill()
        error = process.communicate(timeout=60)[1].decode()
        assert (process.returncode, error) == (1, LOST.format(worker.endpoint))
