"""`specllama serve` as a process: its start and its end."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from prompts import ENDLESS, PROMPTS
from session_options import EXACT_FLAG
from specllama.__main__ import main
from specllama.commands.serve import model_name
from specllama.server.error import printable
from specllama.server.http import nonblocking_log

LONG: dict[str, Any] = {
    "prompt": PROMPTS["module"], "max_tokens": 1900, "temperature": 0.8, "seed": 1, **ENDLESS,
}  # fmt: skip


def logged(line: str) -> str:
    """Return a line of the log without the time."""
    found = re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (.*)\n", line)
    assert found, line
    return found[1]


def log_of(served: subprocess.Popen[str]) -> list[str]:
    """Return the log lines of a process that has ended."""
    assert served.stderr is not None
    return [logged(line) for line in served.stderr]


@pytest.fixture
def process(tmp_path: Any) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts `specllama serve`; returns the process and its URL."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "specllama", "serve", "--port", "0", "-t", "1"]
        started.append(
            subprocess.Popen([*command, "-ngl", "0", *arguments], stderr=subprocess.PIPE, text=True)
        )
        assert started[-1].stderr is not None
        serving, described = (logged(started[-1].stderr.readline()) for _ in range(2))
        assert serving.startswith("Serving "), serving
        assert re.search(r"; slots: \d+, with \d+ tokens .*; threads: 1; drafts: auto$", described)
        return started[-1], serving.split()[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.parametrize("seconds", [0, 60])
def test_sigterm_finishes_or_cuts_answers_and_ends(process: Any, seconds: int) -> None:
    """Running answers finish, or are cut with a finish reason; then the process ends."""
    served, url = process(*EXACT_FLAG, "--shutdown-timeout", str(seconds))
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        whole = client.completions.create(model="", **LONG).choices[0]
        stream = iter(client.completions.create(model="", stream=True, **LONG))
        choices = [next(stream).choices[0]]
        served.send_signal(signal.SIGTERM)
        choices += [event.choices[0] for event in stream]
        text = "".join(choice.text for choice in choices)
        assert whole.text.startswith(text)
        assert (text == whole.text) == (seconds > 0)
        # A finish reason, not a broken connection.
        assert choices[-1].finish_reason == (whole.finish_reason if seconds else "length")
        assert served.wait(60) == 0
        whole_line, cut_line = log_of(served)
        tokens = r"prompt \d+ tokens \(\d+ cached\), answer \d+ tokens, "
        answered = rf"POST /v1/completions: 200, {tokens}"
        assert re.match(answered, whole_line)
        assert re.match(answered, cut_line)
        assert re.search(r" tokens/s, \d+\.\d\d s$", whole_line)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("models/Llama-3.2-1B.Q4_K_M.gguf", "Llama-3.2-1B.Q4_K_M"),
        ("hf://Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0", "Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0"),
    ],
)
def test_the_model_name_comes_from_its_path(model: str, name: str) -> None:
    assert model_name(model) == name


@pytest.mark.parametrize("key", ["a\nb", "\x7f", "secret ", "\udcff", "a,,b", "a, b", ","])
def test_unusable_api_keys_are_refused(
    key: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["serve", "--port", "0", "--api-key", key]) == 2
    monkeypatch.setenv("SPECLLAMA_API_KEY", key)
    assert main(["serve", "--port", "0"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == second
    assert first.startswith("specllama: An API key (--api-key or SPECLLAMA_API_KEY) is empty, has")


def test_ctrl_c_ends_the_server_with_130(process: Any) -> None:
    served, url = process("--alias", "me", "--api-key", "k")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        assert client.models.list().data[0].id == "me"
        served.send_signal(signal.SIGINT)
        assert served.wait(60) == 130
        assert log_of(served) == []


def test_two_signals_in_a_row_end_the_server_in_order(process: Any) -> None:
    served, url = process()
    assert httpx.get(f"{url}/health", timeout=60).status_code == 200  # it handles signals now
    served.send_signal(signal.SIGTERM)
    time.sleep(0.001)  # otherwise the system may merge them
    served.send_signal(signal.SIGTERM)
    assert served.wait(60) == 0
    assert log_of(served) == []


def test_a_second_ctrl_c_cuts_the_answers(process: Any) -> None:
    """The first one lets answers finish, the second cuts them with a finish reason."""
    served, url = process("--shutdown-timeout", "600")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        stream = iter(client.completions.create(model="", stream=True, **LONG))
        next(stream)
        served.send_signal(signal.SIGINT)
        assert logged(served.stderr.readline()).startswith("Answers in progress: 1.")
        served.send_signal(signal.SIGINT)
        assert [event.choices[0].finish_reason for event in stream][-1] == "length"
        assert served.wait(60) == 130
        assert len(log_of(served)) == 1


def test_a_third_ctrl_c_ends_the_server_despite_an_unfinished_request(process: Any) -> None:
    """The server would wait for the request until the shutdown timeout."""
    served, url = process("--shutdown-timeout", "600")
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
        assert (
            httpx.get(f"{url}/health", timeout=60).status_code == 200
        )  # the request above has arrived, too
        for _ in range(30):
            served.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert served.wait(1) == 130
                break
    assert served.poll() == 130


def test_refusals_are_logged_in_one_line_each(process: Any) -> None:
    """A client cannot add lines to the log."""
    served, url = process()
    assert httpx.get(f"{url}/no%0Asuch", timeout=60).status_code == 404
    body = {"messages": []}
    assert httpx.post(f"{url}/v1/messages", json=body, timeout=60).status_code == 400
    served.send_signal(signal.SIGTERM)
    assert served.wait(60) == 0
    lines = [re.sub(r"\d+\.\d\d s", "0 s", line) for line in log_of(served)]
    assert lines == [
        "GET /no\\nsuch: 404, 0 s, GET /nosuch is not served here.",
        "POST /v1/messages: 400, 0 s, messages is empty; give at least one message.",
    ]


def test_verbose_logs_every_request_to_the_file_and_stderr(process: Any, tmp_path: Path) -> None:
    """The texts of prompts and answers are not logged."""
    log = tmp_path / "log"
    log.write_text("before\n")
    served, url = process("-v", "--log-file", str(log))
    body = {"prompt": "def secret(x):\n", "max_tokens": 12, "temperature": 0}
    text = httpx.post(f"{url}/v1/completions", json=body, timeout=60).json()["choices"][0]["text"]
    assert httpx.get(f"{url}/health", timeout=60).status_code == 200
    served.send_signal(signal.SIGTERM)
    assert served.wait(60) == 0
    before, serving, _, *lines = log.read_text().splitlines(keepends=True)
    assert (before, logged(serving).split()[0]) == ("before\n", "Serving")
    assert [logged(line) for line in lines] == log_of(served)
    assert [logged(line).split(":")[0] for line in lines] == ["POST /v1/completions", "GET /health"]
    assert "secret" not in "".join(lines)
    assert len(text.strip()) > 10
    assert text.strip() not in "".join(lines)


def test_log_texts_logs_prompts_and_answers(process: Any) -> None:
    served, url = process("--log-texts")
    body = {"prompt": "def f(x):\n", "max_tokens": 3, "temperature": 0}
    text = httpx.post(f"{url}/v1/completions", json=body, timeout=60).json()["choices"][0]["text"]
    served.send_signal(signal.SIGTERM)
    assert served.wait(60) == 0
    prompt, *rest = (line for line in log_of(served) if line.split(":")[0] in ("Prompt", "Answer"))
    assert prompt.startswith("Prompt: ")
    assert prompt.endswith("def f(x):\\n")
    assert rest == [f"Answer: {printable(text)}"]


def test_an_unwritable_log_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", "--log-file", "/no/such/file"]) == 1
    assert capsys.readouterr().err.startswith("specllama: Cannot write /no/such/file: No such")


def test_connections_are_kept_alive(process: Any) -> None:
    _, url = process()
    opened = []

    def note(name: str, _: object) -> None:
        opened.extend([name] * (name == "connection.connect_tcp.started"))

    limits = httpx.Limits(keepalive_expiry=60)
    with httpx.Client(base_url=url, timeout=20, limits=limits) as client:
        for seconds in (0, 6):  # httpx keeps connections for 5 s by default
            time.sleep(seconds)
            answer = client.get("/health", extensions={"trace": note})
            assert answer.status_code == 200
    assert len(opened) == 1


def test_an_unread_log_does_not_block_requests(process: Any) -> None:
    """A pipe is full after 64 kB. Its writer waits, but requests do not."""
    served, url = process()
    path = "/" + "x" * 1000
    with httpx.Client(base_url=url, timeout=20) as client:
        assert {client.get(path).status_code for _ in range(500)} == {404}
        assert client.get("/health").status_code == 200
        with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as odd:
            odd.sendall(b"x\r\n\r\n")  # uvicorn logs a warning
            assert odd.recv(100).startswith(b"HTTP/1.1 400")
        assert client.get("/health").status_code == 200
    served.send_signal(signal.SIGTERM)
    assert served.wait(60) == 0
    lines = log_of(served)
    assert len(lines) > 10
    assert all(line.startswith(f"GET {path}: 404, ") for line in lines[:-1])


def test_the_api_key_is_read_from_the_environment(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECLLAMA_API_KEY", "secret")
    _, url = process()
    assert httpx.get(f"{url}/v1/models", timeout=60).status_code == 401
    answer = httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 200


def test_serve_command_refuses_bad_input() -> None:
    def serve_with(*arguments: str) -> tuple[int, str]:
        process = subprocess.run(
            [sys.executable, "-m", "specllama", "serve", *arguments],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert "Traceback" not in process.stderr
        return process.returncode, process.stderr

    assert serve_with("-m", "missing.gguf", "--port", "0")[0] == 2
    assert serve_with("--api-key", "")[0] == 2
    code, message = serve_with("--port", "0", "-ngl", "0", "--exact", "on", "--flash-attn", "off")
    assert (code, "flash attention is off" in message) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, message = serve_with("--port", str(taken.getsockname()[1]))
    assert code == 1
    assert "Cannot listen at 127.0.0.1 port" in message


def test_serve_command_without_its_packages_names_the_extra() -> None:
    script = (
        "import sys\nsys.modules['starlette'] = None\n"
        "from specllama.__main__ import main\nsys.exit(main(['serve']))"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert process.stderr.endswith("run: pip install 'specllama[server]'\n")


def test_an_empty_api_key_in_the_environment_is_ignored(
    process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server behaves as without the variable: it serves only this machine's programs."""
    monkeypatch.setenv("SPECLLAMA_API_KEY", "")
    _, url = process()
    for host, status in (("localhost", 200), ("example.com", 403)):
        answer = httpx.get(f"{url}/v1/models", headers={"Host": host}, timeout=60)
        assert answer.status_code == status


def test_the_log_is_flushed_when_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the reader is slow: here it reads only when the handler waits."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    handler = nonblocking_log.NonblockingHandler(writing)
    handler.emit(logging.makeLogRecord({"msg": "the last words"}))
    found, sleep = b"", time.sleep
    os.set_blocking(reading, False)

    def read(seconds: float) -> None:
        nonlocal found
        with contextlib.suppress(BlockingIOError):
            found += os.read(reading, 4096)
        sleep(seconds)

    monkeypatch.setattr(nonblocking_log, "_PATIENCE", 60.0)
    monkeypatch.setattr(time, "sleep", read)
    handler.close()
    monkeypatch.undo()
    os.close(writing)
    with os.fdopen(reading, "rb") as rest:
        found += rest.read()
    assert found.strip(b"x") == b"the last words\n"
