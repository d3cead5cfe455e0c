"""A server of several models. The server and each model have their own processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import ollama
import openai
import pytest
from scripted_model import write_scripted_model
from serving import wait_until
from specllama import SpecSession

TEMPLATE = "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %}{{ bos_token }}"
NAMES = ["one", "two", "endless"]
MESSAGES: list[Any] = [{"role": "user", "content": "u"}]


class Several:
    """The server.

    Attributes:
        url: Its URL.
        pid: Its process id.
        log: Its log lines so far.
    """

    def __init__(self, url: str, pid: int, log: list[str]) -> None:
        self.url = url
        self.pid = pid
        self.log = log

    @property
    def states(self) -> dict[str, str]:
        return {one["id"]: one["status"]["value"] for one in self.listed}

    @property
    def listed(self) -> list[dict[str, Any]]:
        data: list[dict[str, Any]] = httpx.get(self.url + "/v1/models").json()["data"]
        return data

    def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=60, **options)

    def complete(self, model: str, **more: Any) -> httpx.Response:
        body = {"model": model, "prompt": [1], "max_tokens": 3, "temperature": 0} | more
        return self.post("/v1/completions", body)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    """Three models, of which two may be loaded at once, and one that cannot be loaded."""
    folder: Path = tmp_path_factory.mktemp("models")
    said = {"one": ["a", "b", "c", "d"], "two": ["w", "x", "y", "z"], "endless": ["e", "f"]}
    sections = ["[*]\nn-gpu-layers = 0\nthreads = 1\nparallel = 2\nno-spec = true\n"]
    for name, pieces in said.items():
        path = folder / f"{name}.gguf"
        then = {"then": None} if name == "endless" else {}
        write_scripted_model(
            path, pieces, n_ctx=100_000 if then else 512, any_text=True, chat_template=TEMPLATE,
            **then,
        )  # fmt: skip
        sections.append(f"[{name}]\nmodel = {path}\n")
    sections.append(f"[broken]\nmodel = {folder / 'nothing.gguf'}\n")
    (folder / "models.ini").write_text("".join(sections))
    command = [sys.executable, "-m", "specllama", "serve", "--models", str(folder / "models.ini")]
    command += ["--models-max", "2", "--port", "0", "-v"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    log: list[str] = []
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        reading = threading.Thread(target=log.extend, args=(process.stderr,))
        reading.start()
        yield Several(url, process.pid, log)
        process.terminate()
        assert process.wait(60) == 0
        reading.join()
        assert not [
            line for line in log if "Traceback" in line or "Internal server error" in line
        ], log
    finally:
        process.kill()
        process.communicate()


def test_the_model_field_chooses_the_model(several: Several) -> None:
    with closing(openai.OpenAI(base_url=f"{several.url}/v1", api_key="none")) as client:
        for name, said in (("one", "abcd"), ("two", "wxyz")):
            chat = client.chat.completions.create(model=name, messages=MESSAGES, temperature=0)
            assert (chat.model, chat.choices[0].message.content) == (name, said)
            stream = client.chat.completions.create(
                model=name, messages=MESSAGES, temperature=0, stream=True
            )
            assert "".join(one.choices[0].delta.content or "" for one in stream) == said
        assert [one.id for one in client.models.list()] == [*NAMES, "broken"]
        # Without a name, the first model answers.
        answer = several.post("/completion", {"prompt": "u", "n_predict": 2, "temperature": 0})
        assert answer.json()["model"] == "one"


def test_the_list_has_states_and_details_of_loaded_models(several: Several) -> None:
    assert several.complete("one").is_success
    (one, *_, broken) = several.listed
    assert one["status"] == {"value": "loaded"}
    assert one["meta"]["n_ctx"] == 512
    assert broken["status"]["value"] == "unloaded"
    assert httpx.get(f"{several.url}/v1/models/two").json()["id"] == "two"


def test_a_load_error_fails_only_the_requests_for_that_model(several: Several) -> None:
    for path in ("/v1/completions", "/v1/messages", "/api/generate"):
        answer = several.post(path, {"model": "broken", "prompt": "u", "max_tokens": 1})
        assert answer.status_code == 500
        assert "could not be loaded" in answer.text
    assert several.complete("one").is_success
    assert several.listed[-1]["status"]["failed"]


def test_an_unknown_model_is_a_404_that_lists_the_models(several: Several) -> None:
    for path, form in (("/v1/completions", dict), ("/api/chat", str)):
        answer = several.post(path, {"model": "other", "prompt": "u"})
        assert answer.status_code == 404
        assert isinstance(answer.json()["error"], form)
        assert "'other' does not exist; there are: one, two, endless, broken." in answer.text
    assert httpx.get(f"{several.url}/v1/models/other").status_code == 404
    assert several.post("/v1/completions", {"model": 7}).status_code == 400


def test_a_model_that_answers_stays_while_others_are_loaded(several: Several) -> None:
    body = {"model": "endless", "prompt": [1], "stream": True, "max_tokens": 90_000}
    with httpx.stream("POST", f"{several.url}/v1/completions", json=body, timeout=60) as answer:
        parts = answer.iter_lines()
        assert next(parts).startswith("data: ")
        for name in ("one", "two", "one"):
            assert several.complete(name).is_success
            assert several.states["endless"] == "loaded"
        assert next(parts) is not None
    assert httpx.get(f"{several.url}/health").json()["status"] == "ok"
    wait_until(lambda: httpx.get(f"{several.url}/health").json()["running"] == 0)


def test_an_answer_of_any_model_can_be_cancelled(several: Several) -> None:
    body = {"model": "endless", "prompt": [1], "stream": True, "max_tokens": 90_000}
    with httpx.stream("POST", f"{several.url}/v1/completions", json=body, timeout=60) as answer:
        parts = (line for line in answer.iter_lines() if line)
        name = json.loads(next(parts).removeprefix("data: "))["id"]
        cancelled = several.post(f"/v1/completions/{name}/cancel", None)
        assert cancelled.json() == {"id": name, "cancelled": True}
        assert [*parts][-1] == "data: [DONE]"
    assert several.post("/v1/completions/nobody/cancel", None).status_code == 404


def test_metrics_of_all_models_have_their_names(several: Several) -> None:
    for name in ("one", "two"):
        assert several.complete(name).is_success
    text = httpx.get(f"{several.url}/metrics").text
    assert "specllama_models_loaded 2" in text
    for name in ("one", "two"):
        assert f'specllama_requests_total{{model="{name}",outcome="length"}}' in text
    assert text.count("# TYPE specllama_requests_total counter") == 1


def test_describing_a_model_does_not_load_it(several: Several) -> None:
    for name in ("one", "two"):
        assert several.complete(name).is_success
    for path in ("/props", "/slots"):
        assert httpx.get(f"{several.url}{path}", params={"model": "endless"}).is_success
    props = httpx.get(f"{several.url}/props", params={"model": "two"}).json()
    assert props["total_slots"] == 2
    assert several.states["endless"] == "unloaded"
    assert httpx.get(several.url).headers["content-type"].startswith("text/html")


def test_ollamas_clients_use_all_models(several: Several) -> None:
    with closing(ollama.Client(host=several.url)) as client:
        assert [one.model for one in client.list().models] == [*NAMES, "broken"]
        answer = client.chat("two:latest", MESSAGES, options={"temperature": 0})
        assert answer.message.content == "wxyz"
        assert "two" in [one.model for one in client.ps().models]
        assert client.show("two").modelinfo["llama.context_length"] == 512
        assert client.show("endless").capabilities == ["completion", "tools"]
        # With keep_alive 0, a model is unloaded at once.
        client.generate("two", keep_alive=0)
        wait_until(lambda: several.states["two"] == "sleeping")
        client.generate("two", keep_alive="5m")
        assert several.states["two"] == "loaded"


def test_remote_drafts_are_verified_by_the_model_in_the_path(several: Several) -> None:
    with SpecSession(target=f"{several.url}/upstream/two", n_threads=1) as session:
        assert session.chat(MESSAGES, max_tokens=4).text == "wxyz"


def test_a_killed_process_breaks_only_its_own_answers(several: Several) -> None:
    assert several.complete("one").is_success
    body = {"model": "endless", "prompt": [1], "stream": True, "max_tokens": 90_000}
    with httpx.stream("POST", f"{several.url}/v1/completions", json=body, timeout=60) as answer:
        parts = (line for line in answer.iter_lines() if line)
        next(parts)
        os.kill(_process_of(several, "endless"), signal.SIGKILL)
        error = json.loads([*parts][-1].removeprefix("data: "))["error"]
    assert error["message"] == "The process of the model 'endless' has ended; try again."
    assert several.complete("one").is_success
    assert several.complete("endless").is_success  # it is started again


def test_shutdown_cuts_an_answer_with_a_finish_reason(tmp_path: Path) -> None:
    path = tmp_path / "endless.gguf"
    write_scripted_model(path, ["e", "f"], n_ctx=100_000, any_text=True, then=None)
    command = [sys.executable, "-m", "specllama", "serve", "--models-dir", str(tmp_path)]
    command += ["--port", "0", "-t", "1", "-ngl", "0", "--shutdown-timeout", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        reading = threading.Thread(target=process.stderr.read)
        reading.start()
        body = {"prompt": [1], "stream": True, "max_tokens": 90_000}
        with httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=60) as answer:
            parts = (line for line in answer.iter_lines() if line)
            next(parts)
            process.terminate()
            (*_, last, done) = parts
        assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
        assert done == "data: [DONE]"
        assert process.wait(60) == 0
        reading.join(60)


def test_model_processes_end_with_the_server(tmp_path: Path) -> None:
    """Even if the server is killed."""
    path = tmp_path / "a.gguf"
    write_scripted_model(path, ["a", "b"], any_text=True)
    command = [sys.executable, "-m", "specllama", "serve", "--models-dir", str(tmp_path)]
    command += ["--port", "0", "-t", "1", "-ngl", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split()[-1]
    reading = threading.Thread(target=process.stderr.read)
    reading.start()
    several = Several(url, process.pid, [])
    assert several.complete("a").is_success
    child = _process_of(several, "a")
    process.kill()
    process.wait()
    reading.join(60)
    process.stderr.close()
    wait_until(lambda: not _is_running(child))


def _process_of(several: Several, name: str) -> int:
    """Return the process of a loaded model."""
    listing = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    for line in listing.stdout.splitlines():
        pid, parent, arguments = line.split(None, 2)
        if int(parent) == several.pid and f"--alias {name} " in arguments:
            return int(pid)
    raise AssertionError(listing.stdout)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
