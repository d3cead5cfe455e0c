"""/slots: slots are saved, restored and erased, as in llama-server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prompts import ENDLESS, PROMPTS
from serving import Server, refused, serve, wait_until
from session_options import EXACT, FIXED, open_exact
from specllama import SpecSession

PROMPT = PROMPTS["module"]
OTHER = "import os\n\n\ndef other(a, b):\n    return a"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slots")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with (
        SpecSession(n_seq=2, **EXACT, **FIXED) as session,
        serve(session, slot_save_path=folder) as running,
    ):
        yield running


def complete(server: Server, prompt: str, slot: int, **options: Any) -> Any:
    body = {"prompt": prompt, "temperature": 0, "n_predict": 12, "id_slot": slot} | options
    answer = server.post("/completion", body)
    assert answer.is_success, answer.text
    return answer.json()


def act(server: Server, slot: object, action: str, body: Any = None) -> httpx.Response:
    return server.post(f"/slots/{slot}?action={action}", body)


def test_a_request_gets_the_slot_that_it_asks_for(server: Server) -> None:
    for slot in (1, 0):
        found = complete(server, PROMPT, slot)
        assert found["id_slot"] == slot
        again = complete(server, PROMPT, slot)["timings"]
        assert again["cache_n"] == found["tokens_evaluated"] - 1
    client = server.openai()
    answer = client.completions.create(
        model="any", prompt=OTHER, max_tokens=2, extra_body={"id_slot": 1}
    )
    assert answer.usage is not None
    assert complete(server, OTHER, 1)["timings"]["cache_n"] == answer.usage.prompt_tokens - 1


def test_id_slot_out_of_range_is_refused(server: Server) -> None:
    body = {"prompt": PROMPT, "n_predict": 1}
    refused(server.post("/completion", body | {"id_slot": 2}), 400, "id_slot")
    refused(server.post("/v1/completions", body | {"id_slot": -2}), 400, "id_slot")


def test_a_saved_slot_is_restored_into_another(server: Server, folder: Path) -> None:
    expected = complete(server, PROMPT, 0)
    saved = act(server, 0, "save", {"filename": "talk.bin"}).json()
    assert (saved["id_slot"], saved["filename"]) == (0, "talk.bin")
    assert saved["n_written"] == (folder / "talk.bin").stat().st_size
    assert saved["n_saved"] >= expected["tokens_evaluated"]
    assert saved["timings"]["save_ms"] >= 0
    for slot in (0, 1):
        assert act(server, slot, "erase").is_success
    restored = act(server, 1, "restore", {"filename": "talk.bin"}).json()
    assert restored["n_restored"] == saved["n_saved"]
    assert restored["n_read"] == saved["n_written"]
    found = complete(server, PROMPT, 1)
    assert found["content"] == expected["content"]
    assert found["timings"]["cache_n"] == found["tokens_evaluated"] - 1
    assert complete(server, PROMPT, 0)["timings"]["cache_n"] == 0


def test_an_erased_slot_is_empty(server: Server) -> None:
    found = complete(server, OTHER, 0)
    erased = act(server, 0, "erase").json()
    assert erased["id_slot"] == 0
    assert erased["n_erased"] >= found["tokens_evaluated"]
    assert act(server, 0, "erase").json()["n_erased"] == 0
    assert complete(server, OTHER, 0)["timings"]["cache_n"] == 0
    act(server, 0, "erase")
    assert "empty" in refused(act(server, 0, "save", {"filename": "x"}), 400)["message"]


def test_a_slot_in_use_is_refused_and_listed(server: Server) -> None:
    body = {"prompt": PROMPT, "n_predict": 1500, "id_slot": 1, "stream": True}
    biases = {str(token): bias for token, bias in ENDLESS["logit_bias"].items()}
    with httpx.stream(
        "POST", f"{server.url}/completion", json=body | {"logit_bias": biases}, timeout=60
    ) as answer:
        lines = answer.iter_lines()
        next(lines)
        slots = server.get("/slots").json()
        assert [one["is_processing"] for one in slots] == [False, True]
        for action in ("save", "restore", "erase"):
            error = refused(act(server, 1, action, {"filename": "talk.bin"}), 409)
            assert "Slot 1 is in use" in error["message"]
        complete(server, PROMPT, 0)
    wait_until(lambda: not server.get("/slots").json()[1]["is_processing"])


def test_requests_for_one_slot_take_turns() -> None:
    """Other requests use the free slots."""
    with open_exact(None, "ngram", n_seq=2, **FIXED) as session:
        handles = [session.submit(PROMPT, max_tokens=20, id_slot=1) for _ in range(3)]
        other = session.submit(OTHER, max_tokens=5)
        assert [one.result().stats.slot for one in handles] == [1, 1, 1]
        assert other.result().stats.slot in (0, 1)
        assert len({one.result().text for one in handles}) == 1


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", ".hidden", "a/b", "../a", "/etc/passwd", "a\\b", "a\0b", "a\nb", "x" * 300,
        "\u202e", 5, None, ["a"],
    ],
    ids=repr,
)  # fmt: skip
def test_invalid_file_names_are_refused(server: Server, name: Any) -> None:
    for action in ("save", "restore"):
        refused(act(server, 0, action, {"filename": name}), 400, "filename")


def test_links_folders_and_pipes_are_refused(server: Server, folder: Path) -> None:
    complete(server, PROMPT, 0)
    outside = folder.parent / "outside"
    outside.write_bytes(b"mine")
    (folder / "link").symlink_to(outside)
    (folder / "dangling").symlink_to(folder.parent / "nothing")
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    for name in ("link", "dangling", "sub", "pipe"):
        for action in ("save", "restore"):
            refused(act(server, 0, action, {"filename": name}), 400)
    assert outside.read_bytes() == b"mine"
    assert not (folder.parent / "nothing").exists()


def test_invalid_state_files_are_refused_and_change_nothing(server: Server, folder: Path) -> None:
    found = complete(server, PROMPT, 0)
    act(server, 0, "save", {"filename": "whole"})
    whole = (folder / "whole").read_bytes()
    (folder / "cut").write_bytes(whole[: len(whole) // 2])
    (folder / "other").write_bytes(b"specllama corpus")
    for name, status in (("cut", 400), ("other", 400), ("missing", 404)):
        error = refused(act(server, 0, "restore", {"filename": name}), status)
        assert str(folder) not in error["message"]
    assert complete(server, PROMPT, 0)["timings"]["cache_n"] == found["tokens_evaluated"] - 1


@pytest.mark.parametrize("slot", ["2", "-1", "x", "99999999999999999999", "1.0", "٣"])
def test_slot_paths_out_of_range_are_refused(server: Server, slot: str) -> None:
    refused(act(server, slot, "erase"), 404)


def test_other_actions_are_refused(server: Server) -> None:
    refused(act(server, 0, "delete"), 400, "action")
    refused(server.post("/slots/0", {}), 400, "action")


def test_slots_require_the_key_and_files_require_a_folder() -> None:
    with (
        SpecSession(**EXACT, **FIXED) as session,
        serve(session, api_keys=("secret",)) as running,
    ):
        refused(act(running, 0, "erase"), 401)
        key = {"headers": {"Authorization": "Bearer secret"}}
        assert running.post("/slots/0?action=erase", None, **key).is_success
        for action in ("save", "restore"):
            answer = running.post(f"/slots/0?action={action}", {"filename": "a"}, **key)
            assert "--slot-save-path" in refused(answer, 501)["message"]
