"""The session: a model ready to generate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast, overload

from typing_extensions import Self, Unpack

from specllama import _check, _core
from specllama._closing import close_at_exit
from specllama._progress import Progress
from specllama.dialogue.answering import ToolRequest
from specllama.dialogue.chats import Chats
from specllama.drafter import Drafter
from specllama.errors import ArgumentError, BusyError
from specllama.model import hub
from specllama.model.bundled import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.model.chat_template import Message
from specllama.model.media_prompt import n_rows
from specllama.model.opening import check_draft, open_backend
from specllama.model.session_options import SessionOptions
from specllama.model.template_options import TemplateOptions
from specllama.remote.target_options import TargetOptions
from specllama.requests import beams
from specllama.requests.beams import Beam, BeamOptions
from specllama.requests.options import GenerateOptions
from specllama.requests.request import Request, are_several
from specllama.requests.stream import Generation, Stream

__all__ = ["BUNDLED_DRAFT", "BUNDLED_MODEL", "SpecSession"]


class SpecSession(Chats):
    """A GGUF model that generates with speculative decoding: the tokens that the model would choose
    anyway, in less time.

        with SpecSession("model.gguf") as session:
            print(session.generate("def fibonacci(n):", max_tokens=64).text)

    `generate` continues a text, `chat` answers a conversation and `infill` fills a gap; all three
    return the whole result. Methods named `stream...` return it in chunks, `submit...` run in the
    background, and `a...` are for asyncio. Decoding is greedy unless a temperature is given. The KV
    memory is kept between calls: a prompt that begins like the previous one costs only its new
    tokens.

    Any thread may call any method at any time. `submit`, `agenerate`, `astream` and `generate` with
    several prompts queue their requests for the session's worker thread. `stream`, and `generate`
    with one prompt if n_seq=1, run in the calling thread; with n_seq=1 they raise BusyError while
    another thread has an unfinished generation. A forked process cannot use sessions that were
    opened before the fork.

    Args:
        model: Path of a GGUF file (the first part, if it is split), or its name on the Hugging Face
            Hub: "hf://user/repo", "hf://user/repo:quant" or "hf://user/repo/file.gguf" (see
            `from_pretrained`). None: the bundled model.
        draft: The drafter: "ngram" (proposes what followed the same tokens before); the path or
            name (as for `model`) of a smaller GGUF with the same vocabulary, or of a head for the
            model (EAGLE-3, a block drafter, a Gemma 4 assistant, multi-token prediction layers);
            "mtp" (such layers in the model's own file; see docs/guides/heads.md); a `Drafter`; or
            None for plain decoding.
            "auto": the bundled draft model for the bundled model; else a head or draft model found
            next to the model (named on standard error), or "mtp" if the file has such layers: of
            both, the one that reads fewer bytes per token; else "ngram". "hf://auto": like "auto",
            but a head in the model's repository on the Hub is downloaded whatever its size ("auto"
            downloads it only if it is smaller than a tenth of the model).
        target: URL of a `specllama serve` that has the model, e.g. "http://192.168.0.7:8080".
            Drafts are made here, by "ngram" (also "auto"), the given draft model or the `Drafter`,
            and verified there (docs/guides/remote.md). Options of the model, its memory and its
            devices are set on the server and may not be given here; n_threads applies to the draft
            model. "sglang+http://...": an SGLang server (docs/guides/remote-sglang.md). None: the
            model runs here, and target_key, target_timeout and tokenizer may not be given.
        target_key: API key of the server.
        target_timeout: Maximum seconds until an answer of the server is complete.
        tokenizer: For an SGLang target: path or name of a GGUF with its vocabulary; the weights are
            not read. None: the draft model's file.
        chat_template: Jinja source of a chat template, or a `pathlib.Path` of its file, to use
            instead of the model's own.
        template_args: Arguments that every chat passes to the chat template, e.g.
            {"enable_thinking": False}; template_args of a single call override these.
        max_queue: Maximum number of requests that wait while n_seq are running, 0 or more; one more
            raises QueueFullError.
        progress: True draws a bar for loading and for long prompts. A function is called with the
            stage ("load" or "prefill") and the fraction done; it may raise to stop the work.
        verbose: Show llama.cpp's log on stderr (for the whole process).
        **options: Memory, devices, drafting and more, with their defaults: see
            `help(specllama.SessionOptions)`.

    Raises:
        ArgumentError: An option is out of range or of a wrong type.
        ModelError: The file is missing, damaged, or is not a model that generates text; or an RPC
            server cannot be reached.
        HubError: A model could not be downloaded.
        OutOfMemoryError: The context does not fit into memory.
        RemoteError: The server that has the target cannot be reached, refuses, or failed.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        draft: Literal["auto", "mtp", "ngram"] | str | os.PathLike[str] | Drafter | None = "auto",
        *,
        target: str | None = None,
        target_key: str | None = None,
        target_timeout: float = 600.0,
        tokenizer: str | os.PathLike[str] | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        template_args: Mapping[str, Any] | None = None,
        max_queue: int = 64,
        progress: bool | Callable[[str, float], object] = False,
        verbose: bool = False,
        **options: Unpack[SessionOptions],
    ) -> None:
        """Open a model. `help(SpecSession)` describes the arguments, `help(SessionOptions)` the
        other options."""
        if _check.flag("verbose", verbose):
            _core.set_verbose(True)
        template = TemplateOptions.checked(chat_template, template_args)
        self._progress = Progress(progress)
        max_queue = _check.integer("max_queue", max_queue, low=0)
        check_draft(draft)
        elsewhere = TargetOptions.checked(target, target_key, target_timeout, tokenizer)
        backend: _core.Session
        # `on_load` keeps the bar alive: if it were dropped when loading ends, a Ctrl-C at that
        # moment would be raised in the bar's __del__ and lost there.
        with self._progress.load() as on_load:
            if elsewhere is None:
                backend, path = open_backend(model, draft, SessionOptions(**options), on_load)
            else:
                from specllama.remote.opening import open_remote  # here: importing it takes a while

                backend, path = open_remote(elsewhere, draft, {"model": model, **options}, on_load)
        super().__init__(backend, path, template, max_queue=max_queue)
        close_at_exit(self)

    @classmethod
    def from_pretrained(
        cls,
        repo_id: str,
        filename: str | None = None,
        draft: Literal["auto", "mtp", "ngram"] | str | os.PathLike[str] | Drafter | None = "auto",
        **options: Any,
    ) -> Self:
        """Open a model of the Hugging Face Hub. It is downloaded if the cache does not have it.

        Needs the package huggingface_hub (`pip install 'specllama[hub]'`), and uses its cache,
        progress bars, tokens and variables (HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT, ...).
        Without network the cached file is used. All parts of a split model are downloaded.

        Args:
            repo_id: "user/repo", or "user/repo:quant" for the file of that quant. Without a quant,
                as with llama.cpp's `-hf`: Q4_K_M if there is one, else Q8_0, else the first GGUF.
            filename: The file, or a glob pattern that matches one file of the repository, e.g.
                "*Q4_K_M.gguf"; not together with a quant.
            draft: As for the constructor, e.g. "hf://user/smaller-repo:Q8_0".
            **options: The other options of the constructor.

        Raises:
            ArgumentError: `repo_id` does not have this form; or as for the constructor.
            ModelError: The repository or file does not exist or may not be read, or several files
                match; or as for the constructor.
            HubError: The Hub cannot be reached, or the download breaks off or cannot be stored.
        """
        name = _check.text("repo_id", repo_id)
        if filename is not None:
            name = f"{name}/{_check.text('filename', filename)}"
        return cls(str(hub.HubName.parse(name)), draft, **options)

    @overload
    def generate(
        self, prompt: str | Iterable[int], *, n: int = 1, **options: Unpack[GenerateOptions]
    ) -> Generation:
        raise NotImplementedError(GenerateOptions(**options))  # for jedi, see _field.completed

    @overload
    def generate(
        self, prompt: list[str] | list[list[int]], *, n: int = 1, **options: Unpack[GenerateOptions]
    ) -> list[Generation]: ...
    def generate(
        self,
        prompt: str | Iterable[int] | list[str] | list[list[int]],
        *,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Continue a prompt, or several, and return the whole result.

        Args:
            prompt: A text, or token ids, e.g. a list, an integer array or the result of
                `render_chat`. As in llama.cpp, special tokens written in a text become those
                tokens, and the model's BOS is put before it. A list of prompts gives a list of
                results in the same order; each result is that of its prompt alone. An empty list
                gives an empty list.
            n: Number of choices, 1 to 4096. The result is the first choice; its `choices` has all.
                The first uses the given seed or a fresh one; the seeds of the others are derived
                from it.
            **options: Options of the generation, such as max_tokens, temperature, top_p, seed, stop
                and json_schema. `help(specllama.GenerateOptions)` lists all, with their defaults.

        Returns:
            The text, its tokens, why it ended, and statistics. If Ctrl-C or an error interrupts the
            call, `last` has the text generated until then.

        Raises:
            ArgumentError: The prompt is empty, leaves no room in the context, or has ids that are
                not tokens; or an option is wrong, or not available with this model.
            DecodeError: llama.cpp failed.
            ClosedError: The session is closed.
            BusyError: Another thread has an unfinished generation (only with n_seq=1); or a drafter
                of the session called this.
        """
        if isinstance(prompt, list) and not prompt:
            return []
        if are_several(prompt):
            return self._wait_for_all(cast(Any, prompt), n, options)
        return self._continued(cast(Any, prompt), n, options)

    def beam_search(
        self, prompt: str | Iterable[int], n_beams: int, **options: Unpack[BeamOptions]
    ) -> list[Beam]:
        """Return the continuations of a prompt with the best scores, the best first.

        The search follows the rules of Hugging Face's transformers (docs/guides/beams.md). It runs
        in the calling thread, and all other requests wait until it ends; `close` ends it early.

        Args:
            prompt: As for `generate`, but only one.
            n_beams: Texts kept at each step, 1 to 64 (num_beams in transformers).
            **options: See `BeamOptions`.

        Raises:
            ArgumentError: As for `generate`; or the model is recurrent or hybrid.
            DecodeError, ClosedError, BusyError: As for `generate`.
            OutOfMemoryError: There is not enough memory for the beams.
        """
        self._last = lambda: None
        return beams.search(self, self._free_backend, prompt, n_beams, options)

    def stream(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Stream:
        """Continue a prompt and return an iterator over the chunks as they become final.

        Arguments and errors are those of `generate`; BusyError is also raised when n_seq
        generations are unfinished. `echo` affects only the text of `Stream.result()`. Reading may
        stop at any time.
        """
        return self._start(Request.make(self, prompt, GenerateOptions(**options)))

    def replay(
        self,
        prompt: str | Iterable[int],
        text: str | Iterable[int],
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Generate as if the model had chosen a given text, to measure speed on your own texts.

        Every decode, choice, draft, verification and rewind is done; only the token that the model
        chooses is replaced by the token of the text. The cost is therefore real even if the model
        is too small to write such a text.

        Args:
            prompt: As for `generate`.
            text: The text to generate, or its token ids; the context must have room for it.
            **options: As for `generate`, without stop, grammar, json_schema and max_tokens.

        Raises:
            ArgumentError: The text is empty; or as for `generate`.
        """
        for name in ("stop", "grammar", "json_schema", "max_tokens"):
            if name in options:
                raise ArgumentError(f"replay takes no {name}: the text decides.")
        tokens: _check.Tokens = (
            self.tokenize(text, add_special=False)
            if isinstance(text, str)
            else _check.tokens("text", text)
        )
        if len(tokens) == 0:
            raise ArgumentError("The text to replay is empty; give at least one token.")
        given = GenerateOptions(**options)
        given["max_tokens"] = len(tokens)
        return self._start(Request.make(self, prompt, given, replayed=tokens)).run()

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """As `chat`, but in chunks: see `stream`. With tools, chunks have the text as the model
        writes it, calls included; the `message` of `Stream.result()` has the calls separately."""
        given = GenerateOptions(**options)
        if tools is None:
            return self.stream(self.render_chat(messages, template_args), **given)
        asked = ToolRequest.of(self, messages, tools, tool_choice, template_args, given)
        request = Request.make(self, asked.prompt, asked.options)
        return self._start(replace(request, reader=asked.readers[0]))

    def infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Fill a gap in a text. The model must be trained for it.

        Args:
            prefix: The text before the gap. `prefix` and `suffix` together may take three quarters
                of the context. If they are longer, the model reads the parts nearest to the gap,
                and the rest becomes a `reference` to copy drafts from.
            suffix: The text after the gap.
            files: Texts of other files by name, the most important last.
            n: As for `generate`.
            **options: As for `generate`.

        Raises:
            ModelError: The model has no tokens for filling in the middle.
            ArgumentError: As for `generate`.
        """
        prompt, options = self._infill_request(prefix, suffix, files, GenerateOptions(**options))
        return self._continued(prompt, n, options)

    def stream_infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """As `infill`, but in chunks: see `stream`."""
        prompt, options = self._infill_request(prefix, suffix, files, GenerateOptions(**options))
        return self.stream(prompt, **options)

    @property
    def last(self) -> Generation | None:
        """The most recent generation, complete or not, even if it was interrupted. Of several
        requests made together: the one that began last. None after a beam search. May be read from
        any thread."""
        return self._last()

    def close(self) -> None:
        """Free the model and its memory, and end unfinished generations. Later calls raise
        ClosedError; closing twice is allowed. (In a forked process nothing is freed, because the
        memory is shared.)

        Raises:
            BusyError: A drafter of the session called this.
        """
        if not self._process.is_here:
            return
        if self._opened.entered:
            raise BusyError("A drafter may not close its own session.")
        self._worker.close()
        self._opened.close()

    def __repr__(self) -> str:
        if not self._process.is_here or self._opened.closed:
            return "<SpecSession, closed>"
        return f"<SpecSession {self.model_description}, n_ctx={self.n_ctx}>"

    def _continued(
        self, prompt: str | Iterable[int], n: int, options: GenerateOptions
    ) -> Generation:
        """Continue one prompt. With n_seq=1 and one choice this runs in the calling thread, which
        saves a hand-over."""
        if n == 1 and self._backend.n_seq == 1:
            return self.stream(prompt, **options).run()
        (whole,) = self._wait_for_all([prompt], n, options)
        return whole

    def _start(self, request: Request) -> Stream:
        state = request.begin(self._free_backend)
        # The stream comes first: if Ctrl-C interrupts this, the stream is dropped and so cancelled.
        stream = Stream(state, n_rows(request.tokens), self._progress.prefill())
        self._last = state.result
        return stream
