"""A model in memory: tokenizing, chat template, properties."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from specllama import _check, _core
from specllama._process import ProcessGuard
from specllama.formats import state_file
from specllama.media.placeholders import Placeholders
from specllama.model.chat_template import ChatTemplate, Message
from specllama.model.infill import FimTokens, Infill, InfillPrompts
from specllama.model.media_prompt import MediaPrompt, without_media
from specllama.model.media_reader import MediaReader
from specllama.model.tainted_text import plain_ranges
from specllama.model.template_options import TemplateOptions


class LoadedModel:
    """The model of a session: everything except generating. May be used from any thread; after
    `close`, and in a forked process, everything raises ClosedError."""

    def __init__(self, backend: _core.Session, path: str, template: TemplateOptions) -> None:
        self._process = ProcessGuard()
        self._opened = backend
        self._path = path
        self._template = template
        self._chat_template: ChatTemplate | None = None
        self._infill_prompts: InfillPrompts | None = None

    @property
    def _backend(self) -> _core.Session:
        self._process.check()
        return self._opened

    @property
    def _free_backend(self) -> _core.Session:
        """The backend, for work in the calling thread."""
        return self._backend

    def tokenize(
        self,
        text: str,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        plain: Sequence[tuple[int, int]] = (),
    ) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: Any text.
            add_special: Add the model's BOS before the text, if the model uses one; never its EOS.
            parse_special: Read special tokens written in the text as those tokens.
            plain: Parts of the text in which control tokens are read as plain text: pairs of begin
                and end in bytes of UTF-8, in order.

        Returns:
            Always a list. (Methods that take token ids also take int32 arrays.)
        """
        return self._backend.tokenize(
            _check.text("text", text),
            add_special=bool(add_special),
            parse_special=bool(parse_special),
            plain=_check.ranges("plain", plain),
        )

    def tokenize_prompt(
        self, prompt: str, media: Placeholders[_core.Media] | None = None
    ) -> list[int]:
        """Return the token ids of a prompt that the chat template has rendered; a `MediaPrompt` if
        the conversation has `media`. No token is added, because the template writes the special
        tokens itself. Control tokens written in messages are read as plain text. Raises
        ArgumentError if the template has left out a medium."""
        if media is not None and media.media:
            return self.media_prompt(media.split(prompt, self.tokenize_prompt))
        return self.tokenize(prompt, add_special=False, plain=plain_ranges(prompt))

    def media_prompt(self, parts: Sequence[list[int] | _core.Media]) -> MediaPrompt:
        """Return the prompt made of token ids, images and sounds in this order. Raises
        ArgumentError if one of these does not fit this model."""
        return MediaPrompt(self._backend.media_prompt(parts), parts)

    def media_reader(self) -> MediaReader:
        """Return the reader for the images and sounds of a conversation."""
        return MediaReader(sees=self.sees, audio_rate=self.audio_rate)

    def detokenize(self, tokens: Iterable[int], *, special: bool = False) -> str:
        """Return the text of token ids, with U+FFFD for bytes that are not UTF-8.

        Args:
            tokens: Token ids. Images and sounds of a prompt have no text.
            special: Include the texts of special tokens.
        """
        tokens = without_media(tokens)
        return self._backend.detokenize(_check.tokens("tokens", tokens), special=bool(special))

    def token_text(self, token: int) -> str:
        """Return the text that a token adds, with U+FFFD for bytes that are not UTF-8 by
        themselves. Special tokens have their texts."""
        return piece(self._backend, _check.integer("token", token))

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes that a token adds. They may begin or end inside a character. Special
        tokens have the bytes of their texts."""
        return self._backend.piece(_check.integer("token", token))

    def render_chat(
        self, messages: Sequence[Message], template_args: Mapping[str, Any] | None = None
    ) -> list[int]:
        """Return the token ids of the prompt that `chat` continues; a `MediaPrompt` if there are
        images or sounds. Control tokens written in messages are read as plain text.

        Args:
            messages: The whole conversation, as for `chat`.
            template_args: Arguments for the template, e.g. {"enable_thinking": False}.

        Raises:
            ModelError: The model has no chat template.
            ArgumentError: The template refuses the messages, or `template_args` is wrong; or an
                image or a sound cannot be used.
        """
        reader = self.media_reader()
        prompt = self.chat_template.render(reader.messages(messages), template_args)
        return self.tokenize_prompt(prompt, reader.placeholders)

    @property
    def chat_template(self) -> ChatTemplate:
        """The chat template. Raises ModelError if the model has none and none was given."""
        if self._chat_template is None:
            bos, eos = (
                self.detokenize([token], special=True) if token >= 0 else ""
                for token in (self._backend.bos, self._backend.eos)
            )
            self._chat_template = ChatTemplate(
                self.chat_template_source, bos=bos, eos=eos, begins_with_bos=bool(self._begin),
                arguments=self._template.arguments,
            )  # fmt: skip
        return self._chat_template

    @property
    def _begin(self) -> list[int]:
        """The BOS token, if every text of the model begins with it; else empty."""
        begin = self.tokenize("")[:1]
        return begin if begin == [self._backend.bos] else []

    @property
    def chat_template_source(self) -> str | None:
        """The chat template as Jinja source, even if it cannot be parsed; None if there is none."""
        own = self._backend.chat_template
        return own if self._template.source is None else self._template.source

    def render_infill(
        self,
        prefix: str,
        suffix: str,
        files: Iterable[tuple[str, str]] = (),
        *,
        max_prompt: int | None = None,
    ) -> Infill:
        """Return the prompt that `infill` continues.

        Args:
            prefix: The text before the gap.
            suffix: The text after the gap.
            files: Names and texts of other files that may help, the most important last.
            max_prompt: Maximum length of the prompt in tokens; text farthest from the gap is left
                out. None: three quarters of the context.

        Raises:
            ModelError: The model has no tokens for filling in the middle.
            ArgumentError: A name or a text is not a str.
        """
        if self._infill_prompts is None:
            fim = FimTokens(*self._backend.fim)
            # A method of the session would make a reference cycle here.
            self._infill_prompts = InfillPrompts(
                fim, self._begin, partial(_plain_tokens, self._backend)
            )
        most = self.n_ctx * 3 // 4 if max_prompt is None else max_prompt
        texts = (_check.text("prefix", prefix), _check.text("suffix", suffix))
        others = [
            (_check.text("the name of a file", name), _check.text(f"the file {name!r:.80}", text))
            for name, text in files
        ]
        return self._infill_prompts.make(*texts, others, most)

    def save_state(self, path: str | os.PathLike[str], *, slot: int | None = None) -> int:
        """Save the KV memory of the generation that ended last (its tokens and their state), so
        that another session need not compute it again.

        The file is written next to `path` and then renamed, so `path` is never incomplete.

        Args:
            path: The file.
            slot: The slot of the memory to save, 0 to n_seq - 1. None: that of the generation that
                ended last.

        Returns:
            Number of tokens saved.

        Raises:
            ArgumentError: Nothing has been generated yet, or the slot does not exist.
            BusyError: The slot is in use.
            SpecllamaError: The file cannot be written.
        """
        place = Path(_check.path("path", path))
        key, tokens, memory = self._free_backend.save(_slot(slot))
        kind = state_file.Kind(state_file.fingerprint(self._path), key)
        state_file.write(place, kind, tokens, memory)
        return len(tokens)

    def load_state(self, path: str | os.PathLike[str], *, slot: int | None = None) -> int:
        """Load a state saved by `save_state`. Prompts that begin with its tokens then decode only
        their other tokens. The model, the type of the KV memory, flash attention, exactness and the
        version of llama.cpp must be the same; n_seq, too, if each request has its own part of the
        memory.

        The file is checked completely before anything changes. A forged file cannot harm the
        process, but it can make the model continue as if after another text: load only files that
        you trust.

        Args:
            path: The file.
            slot: The slot of the memory to load into, 0 to n_seq - 1. None: the one that a
                new prompt would get.

        Returns:
            Number of tokens loaded.

        Raises:
            ArgumentError: The file is missing, damaged, or from another kind of session; or the
                slot does not exist.
            BusyError: The slot is in use; with None, all are.
        """
        saved = state_file.read(Path(_check.path("path", path)), state_file.fingerprint(self._path))
        self._free_backend.load(*saved, slot=_slot(slot))
        return len(saved[1])

    def erase_slot(self, slot: int) -> int:
        """Empty a slot of the KV memory, 0 to n_seq - 1. Copies in main memory (`cache_ram`) are
        kept.

        Returns:
            Number of tokens it held.

        Raises:
            ArgumentError: The slot does not exist.
            BusyError: The slot is in use.
        """
        return self._free_backend.erase(_check.integer("slot", slot, low=0))

    @property
    def has_chat_template(self) -> bool:
        """Whether the model supports `chat`."""
        return bool(self.chat_template_source)

    @property
    def has_infill(self) -> bool:
        """Whether the model supports `infill`."""
        return min(FimTokens(*self._backend.fim)[:3]) >= 0

    @property
    def sees(self) -> bool:
        """Whether the model accepts images: it was opened with a projector for them (`mmproj`)."""
        return self._backend.sees

    @property
    def hears(self) -> bool:
        """Whether the model accepts sounds."""
        return self.audio_rate > 0

    @property
    def audio_rate(self) -> int:
        """Sample rate of the model's sounds in Hz; 0 if it does not accept sounds."""
        return self._backend.audio_rate

    @property
    def n_ctx(self) -> int:
        """Maximum number of tokens of one request, prompt and generated text together."""
        return self._backend.n_ctx

    @property
    def n_seq(self) -> int:
        """Maximum number of requests that run at the same time."""
        return self._backend.n_seq

    @property
    def n_vocab(self) -> int:
        """Number of tokens in the vocabulary."""
        return self._backend.n_vocab

    @property
    def n_threads(self) -> int:
        """Number of CPU threads that compute."""
        return self._backend.n_threads

    @property
    def model_description(self) -> str:
        """Architecture, size and weight type of the model, as in its file."""
        return self._backend.model_description

    @property
    def cpu_kernels(self) -> str:
        """The kinds of CPU kernels and the share of the weights that each multiplies, e.g. "AMX
        76 %, plain 24 %". AMX: tiles of Intel AMX; repacked: weights repacked for the processor;
        plain: weights as in the file. "" if a GPU holds weights."""
        return self._backend.cpu_kernels


def _slot(slot: int | None) -> int:
    return -1 if slot is None else _check.integer("slot", slot, low=0)


def backend_of(model: LoadedModel) -> _core.Session:
    """Return the backend of a session."""
    return model._backend


def path_of(model: LoadedModel) -> str:
    """Return the model's file, or the address of the server that has the model."""
    return model._path


def piece(backend: _core.Session, token: int) -> str:
    """See `LoadedModel.token_text`."""
    return backend.piece(token).decode(errors="replace")


def _plain_tokens(backend: _core.Session, text: str) -> list[int]:
    return backend.tokenize(text, add_special=False, parse_special=False)
