"""A stand-in for an SGLang server, not SGLang itself: it implements /generate according to SGLang's
source (see specllama/remote/sglang/__init__.py), with a GGUF that llama-cpp-python computes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import uvicorn
from numpy.typing import NDArray
from specllama import _core
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Fault = Callable[[dict[str, Any]], Response]
"""Answers a request in place of the model."""

_MARGIN = 6  # tokens of the context that SGLang does not allow for inputs


def cut(body: dict[str, Any]) -> Response:
    """Send the beginning of an answer, and close the connection."""
    return Response(b'{"meta', headers={"content-length": "1000"}, media_type="application/json")


class StandIn:
    """The server's application.

    Attributes:
        faults: Faults of the next requests to /generate, in order.
        asked: Bodies that the model answered.
        computed: Number of tokens that it computed for each of these.
        tells_length: Whether it has /server_info; older versions have /get_server_info.
        died: Why it has stopped ("": it runs). SGLang does not check what is in `_fatal`: its
            scheduler fails, which ends the server.
    """

    def __init__(self, model: Path, n_ctx: int) -> None:
        # As in the tests' sessions, whose logits do not depend on the batch.
        q8_0 = llama_cpp.GGML_TYPE_Q8_0
        self._llama: Any = llama_cpp.Llama(
            str(model), n_ctx=n_ctx, n_threads=1, n_threads_batch=1, n_gpu_layers=0,
            flash_attn=True, type_k=q8_0, type_v=q8_0, logits_all=True, verbose=False,
        )  # fmt: skip
        self._tokenizer = _core.Tokenizer(str(model))
        self._held: list[int] = []
        self._lock = threading.Lock()
        self._n_ctx = n_ctx
        self.faults: list[Fault] = []
        self.asked: list[dict[str, Any]] = []
        self.computed: list[int] = []
        self.tells_length = True
        self.died = ""
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/server_info", self._info),
                Route("/generate", self._generate, methods=["POST"]),
                Route("/{path:path}", self._nothing),
            ]
        )

    def close(self) -> None:
        self._llama.close()

    async def _models(self, request: Request) -> Response:
        model = {"id": "stand-in", "object": "model", "max_model_len": self._n_ctx}
        return JSONResponse({"object": "list", "data": [model]})

    async def _info(self, request: Request) -> Response:
        if not self.tells_length:
            return await self._nothing(request)
        return JSONResponse({"max_req_input_len": self._n_ctx - _MARGIN, "version": "stand-in"})

    async def _nothing(self, request: Request) -> Response:
        return JSONResponse({"detail": "Not Found"}, 404)

    async def _generate(self, request: Request) -> Response:
        body = await request.json()
        if self.faults:
            return self.faults.pop(0)(body)
        ids = body["input_ids"]
        if not ids or len(ids) >= self._n_ctx - _MARGIN:
            return _refusal(f"Input length ({len(ids)} tokens) is not from 1 to {self._n_ctx - 7}.")
        n_vocab = self._tokenizer.n_vocab
        for token in body.get("token_ids_logprob") or []:
            if not 0 <= token < n_vocab:
                return _refusal(
                    f"token_ids_logprob contains out-of-vocabulary token id {token}; "
                    f"valid range is [0, {n_vocab})."
                )
        self.died = self.died or _fatal(body, n_vocab)
        if self.died:
            raise RuntimeError(self.died)
        with self._lock:
            self.asked.append(body)
            return JSONResponse(self._answer(body, ids))

    def _answer(self, body: dict[str, Any], ids: list[int]) -> dict[str, Any]:
        began = time.monotonic()
        start = body.get("logprob_start_len", -1)
        if start < 0:
            start = len(ids) - 1
        n_cached, logits = self._logits(ids, start)
        sampling = body["sampling_params"]
        assert sampling["max_new_tokens"] == 1
        with_text = body.get("return_text_in_logprobs", False)
        n_top = body.get("top_logprobs_num", 0)
        logprobs = _log_softmax(logits)  # after ids[start], ids[start + 1], ...
        # Output log-probabilities are of the sampled distribution, with its own temperature.
        temperature = sampling.get("temperature", 1.0) or 1.0
        output = _log_softmax(logits[-1:] / temperature)[0]
        token = int(np.argmax(output))

        def entry(row: NDArray[np.float64], one: int) -> list[Any]:
            text = self._tokenizer.detokenize([one], special=True) if with_text else None
            return [float(row[one]), one, text]

        def top(row: NDArray[np.float64]) -> list[list[Any]]:
            return [entry(row, int(one)) for one in np.argsort(-row, kind="stable")[:n_top]]

        meta: dict[str, Any] = {
            "id": "0",
            "finish_reason": {"type": "length", "length": 1},
            "prompt_tokens": len(ids),
            "completion_tokens": 1,
            "cached_tokens": n_cached,
        }
        if body.get("return_logprob"):
            known = zip(logprobs[:-1], ids[start + 1 :], strict=True)
            first = [None, ids[start], entry(logprobs[0], ids[start])[2]]
            meta["input_token_logprobs"] = [first, *(entry(row, one) for row, one in known)]
            meta["output_token_logprobs"] = [entry(output, token)]
            if n_top > 0:
                meta["input_top_logprobs"] = [None, *map(top, logprobs[:-1])]
                meta["output_top_logprobs"] = [top(output)]
        meta["e2e_latency"] = time.monotonic() - began
        return {"text": "", "output_ids": [token], "meta_info": meta}

    def _logits(self, ids: list[int], start: int) -> tuple[int, NDArray[np.float32]]:
        """Return the number of cached tokens, and the logits after ids[start], ..."""
        n = 0
        while n < min(start, len(self._held)) and self._held[n] == ids[n]:
            n += 1
        self._llama.n_tokens = n  # the next evaluation truncates the memory to n tokens
        self._llama.eval(ids[n:])
        self._held = list(ids)
        self.computed.append(len(ids) - n)
        return n, np.array(self._llama.scores[start : len(ids)])


def _fatal(body: dict[str, Any], n_vocab: int) -> str:
    if max(body["input_ids"]) >= n_vocab:
        return f"input_ids has {max(body['input_ids'])}"
    n_top = body.get("top_logprobs_num", 0)
    return f"top_logprobs_num is {n_top}" if n_top > n_vocab else ""


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    return np.asarray(exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True)))


def _refusal(message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, 400)


@contextmanager
def stand_in(model: Path, n_ctx: int = 2048) -> Iterator[tuple[StandIn, str]]:
    """Run a stand-in in a thread; yield it and the target for a session."""
    answers = StandIn(model, n_ctx)
    server = uvicorn.Server(uvicorn.Config(answers.app, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield answers, f"sglang+http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
            answers.close()
        assert not answers.died
