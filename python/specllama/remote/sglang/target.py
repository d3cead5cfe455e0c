"""A target served by an SGLang server."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NoReturn

from typing_extensions import Unpack

from specllama import _core
from specllama.errors import ArgumentError, RemoteError
from specllama.formats.wire import MOST_DRAFTED
from specllama.remote.answer import Description
from specllama.remote.fields import Fields
from specllama.remote.link import Link, NotFoundError
from specllama.remote.sglang.generate import Generate
from specllama.remote.sglang.rounds import Rounds
from specllama.remote.sglang.vocabulary import check_vocabulary
from specllama.remote.target import Target, TokenizeOptions
from specllama.remote.text import Text

MOST_TOP = 64
"""Maximum number of tokens requested from SGLang per position; each takes about 30 bytes."""
_ROOM = 6
"""Tokens of SGLang's context that an input must leave free."""
_MOST_CONTEXT = 2**31 - 1
_MOST_MODELS = 1000
_LONGEST_NAME = 4096


class SGLang(Target):
    """See `Target`. Vocabulary and chat template come from a local file.

    Args:
        link: The link to the server.
        path: A GGUF with the vocabulary of the server's model.

    Raises:
        ModelError: The file cannot be used, or its vocabulary differs from the server's.
        RemoteError: The server cannot be reached, or is not an SGLang server.
    """

    def __init__(self, link: Link, path: str) -> None:
        super().__init__(link)
        self._tokenizer = _core.Tokenizer(path)
        self._trip = math.inf
        self._generate = Generate(link)
        name, n_ctx = self._served()
        self._n_vocab = check_vocabulary(self._generate, self.url, self._tokenizer, path)
        tokenizer = self._tokenizer
        self.about = Description(
            description=name,
            kernels="",
            n_ctx=n_ctx,
            n_vocab=self._n_vocab,
            n_threads=0,
            vocabulary=f"{tokenizer.vocabulary:016x}",
            bos=tokenizer.bos,
            eos=tokenizer.eos,
            fim=tokenizer.fim,
            chat_template=tokenizer.chat_template,
            decode_seconds=[],
            max_draft_length=MOST_DRAFTED,
            max_candidates=1,
            max_draft_tokens=MOST_DRAFTED,
        )
        self.table = tokenizer.vocabulary_table()

    def _served(self) -> tuple[str, int]:
        """Return the name of the served model, and the most tokens of prompt and generated text."""
        reply = self._link.get("/v1/models").items("data", most=_MOST_MODELS)
        if not reply or not isinstance(reply[0], dict):
            raise RemoteError(f"{self.url} does not name its model; is it an SGLang server?")
        model = Fields(self.url, reply[0], "data[0].")
        name = model.text("id", _LONGEST_NAME)
        info = self._info()
        if "max_req_input_len" in info:
            return name, info.integer("max_req_input_len", 1, _MOST_CONTEXT)
        return name, model.integer("max_model_len", _ROOM + 1, _MOST_CONTEXT) - _ROOM

    def _info(self) -> Fields:
        for path in ("/server_info", "/get_server_info"):  # the second one in older versions
            try:
                return self._link.get(path)
            except NotFoundError:
                pass
        return Fields(self.url, {})

    def ping(self) -> None:
        began = time.monotonic()
        self._link.get("/v1/models")  # not /health, which may generate a token
        self._trip = min(self._trip, time.monotonic() - began)

    def tokenize(self, text: str, **options: Unpack[TokenizeOptions]) -> list[int]:
        return self._tokenizer.tokenize(text, **options)

    def detokenize(self, tokens: Sequence[int], *, special: bool) -> str:
        return self._tokenizer.detokenize(tokens, special=special)

    def begin(self, text: Text) -> Rounds:
        _check(text)
        for token in text.prompt:
            if token >= self._n_vocab:
                raise ArgumentError(
                    f"The prompt has token {token}, but {self.url} has only the tokens 0 to "
                    f"{self._n_vocab - 1}."
                )
        return Rounds(self._generate, self._tokenizer, self._n_vocab, self._trip, text)


def _check(text: Text) -> None:
    sampling = text.sampling
    if sampling.temperature != 0 and not 1 <= sampling.top_k <= MOST_TOP:
        raise ArgumentError(
            "An SGLang target sends only its likeliest tokens; with a temperature give a top_k "
            f"from 1 to {MOST_TOP}, not {sampling.top_k} (0 is off)."
        )
    if sampling.logprobs > MOST_TOP:
        raise ArgumentError(
            f"An SGLang target sends log-probabilities of at most {MOST_TOP} tokens, not "
            f"{sampling.logprobs}."
        )
    if sampling.logprobs >= 0 and sampling.processed_logprobs:
        _refuse("processed log-probabilities")
    if sampling.grammar:
        _refuse("a grammar or a schema")
    if sampling.ignore_eos:
        _refuse("ignore_eos")
    if sampling.logit_bias:
        _refuse("logit_bias")
    if sampling.reasoning_budget >= 0 and sampling.reasoning_closing:
        _refuse("reasoning_budget")
    if not text.cache_prompt:
        _refuse("cache_prompt=False")
    penalties = (
        sampling.repeat_penalty,
        sampling.frequency_penalty,
        sampling.presence_penalty,
    )
    if sampling.repeat_last_n != 0 and penalties != (1, 0, 0):
        _refuse("penalties")
    if sampling.dry_multiplier > 0 and sampling.dry_penalty_last_n != 0:
        _refuse("DRY")
    if sampling.typical_p < 1 or sampling.top_n_sigma > 0 or sampling.xtc_probability > 0:
        _refuse("typical_p, top_n_sigma and XTC")


def _refuse(what: str) -> NoReturn:
    raise ArgumentError(
        f"An SGLang target sends only its likeliest tokens, which is not enough for {what}; leave "
        "that out."
    )
