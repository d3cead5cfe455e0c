"""The session: a model ready to generate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from typing_extensions import Self, Unpack

from specllama import _check, _core, hub
from specllama._progress import Progress
from specllama.chat import ChatTemplate, Message
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.options import GenerateOptions, core_options
from specllama.stream import Generation, Record, Stream
from specllama.trace import shortened

T = TypeVar("T")

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model that a session without a model uses: it continues Python in the style of the standard
library; good for a try and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""A smaller model of the same vocabulary, to draft for it."""


class SpecSession:
    """A GGUF model that generates with speculative decoding: the same tokens as without, sooner.

    Decoding is greedy unless a temperature is given. The KV memory stays between calls, so that a
    prompt which begins like the one before costs only what is new. A session may move between
    threads but not be used by two at once, unless `n_seq` is above 1.

    Args:
        model: Path of a GGUF file (the first part, if it is split), or its name on the Hugging Face
            Hub: "hf://user/repo", "hf://user/repo:quant" or "hf://user/repo/file.gguf" (see
            `from_pretrained`); None is the bundled model.
        draft: Who proposes tokens: "ngram" (what followed the same tokens before), the path or
            name, as above, of a smaller GGUF with the same vocabulary, a `Drafter`, or None for
            plain decoding. "auto" is the bundled draft model for the bundled model, else
            "ngram".
        n_ctx: Most tokens of prompt and generation together, of each request. None: as the model
            was trained, at most 8192, and less, with a notice, when memory is short.
        n_seq: Requests served at once, 1 to 64. With more than one, any thread may use the
            session, and a step of any stream advances all of them together.
        n_batch: Most tokens decoded at once, n_seq to 8192; the chunk of a prefill.
        n_threads: Threads. None: one per performance core.
        n_gpu_layers: Layers kept on the GPU; -1: all; 0: the GPU is not used at all. None: -1, or 0
            with exact=True.
        flash_attn: Flash attention: True, False, or "auto" (where the device has it).
        kv_type: Type of the KV memory: "f16", "q8_0", or another of llama.cpp's. None: "f16", or
            "q8_0" where the session is exact.
        exact: Whether speculative and plain decoding must give the same tokens to the last one,
            near-ties included. That takes an x86-64 processor and no GPU, a Q8_0 KV memory with
            flash attention, and weights of the types Q8_0, Q4_0, F32, F16 or BF16. True: have it
            so, or say what is in the way. "auto": have it so for Q8_0 weights, which costs next to
            nothing, unless another option contradicts or n_seq is above 1. False: leave it to the
            other options. `Stats.exact` says whether a run had it. (With n_seq above 1 the KV
            memories of the requests then lie apart, those of sliding windows keep the whole text,
            and only drafts of equal length are verified together.)
        corpus: Path of a file by `specllama corpus build`, of this model's vocabulary: texts to
            copy from, besides prompt and generation, in every call. None: none. (Without effect
            with draft=None, and with a draft model and a fixed spec_length.)
        spec_length: Most tokens drafted per round, 1 to 64; or "auto": as many as are expected to
            pay, none included, by what decodes take on this machine and what was accepted so far.
            (Which widths are decoded then depends on the clock: outside the exact configuration a
            fixed number is the way to repeat a run.)
        cascade: Whether n-grams and matches share the work with a draft model, where spec_length is
            "auto".
        ngram_order: Longest n-gram, 2 to 8.
        ngram_window: Only n-grams of the last so many tokens count; 0: all. (Matches of 4 tokens
            and more are looked for in the whole text.)
        ngram_draw: Draw the n-gram drafts of sampled requests from relative frequencies, instead of
            taking the most frequent token: more is accepted so with acceptance="rejection".
        ngram_max_bytes: Bound on the n-gram tables' memory, at least 65536, and again on that of
            finding matches; what is old goes first.
        draft_n_gpu_layers, draft_n_threads, draft_kv_type: As above, for the draft model. None: as
            for the model.
        draft_p_min: A draft ends before a token that the draft model gives less than this
            probability; 0: off. (With acceptance="rejection": whose likeliest alternative has
            less.)
        draft_temperature, draft_top_k, draft_top_p, draft_min_p: How the draft model's tokens are
            chosen. None: as the model's. The output remains the model's own.
        progress: True draws a bar for loading and for long prompts; a function is called with the
            stage ("load" or "prefill") and the fraction done, and may raise to stop it.
        verbose: Show llama.cpp's log on stderr (for the whole process).

    Raises:
        ArgumentError: An option is out of range or of a wrong type.
        ModelError: The file is missing, damaged, or no model that generates text.
        HubError: A model could not be downloaded.
        OutOfMemoryError: The context does not fit into memory.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        draft: Literal["auto", "ngram"] | str | os.PathLike[str] | Drafter | None = "auto",
        *,
        n_ctx: int | None = None,
        n_seq: int = 1,
        n_batch: int = 512,
        n_threads: int | None = None,
        n_gpu_layers: int | None = None,
        flash_attn: bool | Literal["auto"] = "auto",
        kv_type: str | None = None,
        exact: bool | Literal["auto"] = "auto",
        corpus: str | os.PathLike[str] | None = None,
        spec_length: int | Literal["auto"] = "auto",
        cascade: bool = True,
        ngram_order: int = 4,
        ngram_window: int = 0,
        ngram_max_bytes: int = 64 << 20,
        ngram_draw: bool = False,
        draft_n_gpu_layers: int | None = None,
        draft_n_threads: int | None = None,
        draft_kv_type: str | None = None,
        draft_p_min: float = 0.0,
        draft_temperature: float | None = None,
        draft_top_k: int | None = None,
        draft_top_p: float | None = None,
        draft_min_p: float | None = None,
        progress: bool | Callable[[str, float], object] = False,
        verbose: bool = False,
    ) -> None:
        if not isinstance(flash_attn, (bool, str)) or flash_attn not in ("auto", True, False):
            raise ArgumentError(f'flash_attn must be True, False or "auto", not {flash_attn!r}.')
        if verbose:
            _core.set_verbose(True)
        self._progress = Progress(progress)
        self._last: Record | None = None
        self._chat_template: ChatTemplate | None = None
        if not isinstance(exact, (bool, str)) or exact not in ("auto", True, False):
            raise ArgumentError(f'exact must be True, False or "auto", not {exact!r}.')
        flash = None if flash_attn == "auto" else bool(flash_attn)
        if model is None and isinstance(draft, str) and draft == "auto":
            draft = BUNDLED_DRAFT
        drafter = draft if isinstance(draft, Drafter) else None
        ngram: _core.NGramOptions | None = None
        draft_model: _core.DraftModelOptions | None = None
        if draft is not None and drafter is None:
            ngram = _core.NGramOptions(
                max_order=_check.integer("ngram_order", ngram_order),
                window=_check.integer("ngram_window", ngram_window),
                max_bytes=_check.integer("ngram_max_bytes", ngram_max_bytes, low=0, high=2**62),
                draw=bool(ngram_draw),
            )
            if not isinstance(draft, (str, os.PathLike)):
                raise ArgumentError(
                    f'draft must be "auto", "ngram", the path of a GGUF file, a Drafter or None, '
                    f"not {draft!r}."
                )
            if draft not in ("auto", "ngram"):
                draft_model = _core.DraftModelOptions(
                    path=hub.local_path("draft", draft),
                    n_gpu_layers=_optional(
                        _check.integer,
                        "draft_n_gpu_layers",
                        _first(draft_n_gpu_layers, n_gpu_layers),
                    ),
                    n_threads=_check.integer(
                        "draft_n_threads", _either(draft_n_threads, _either(n_threads, 0))
                    ),
                    flash_attn=flash,
                    kv_type=_optional(_check.text, "draft_kv_type", _first(draft_kv_type, kv_type)),
                    p_min=_check.number("draft_p_min", draft_p_min),
                    temperature=_optional(_check.number, "draft_temperature", draft_temperature),
                    top_k=_optional(_check.integer, "draft_top_k", draft_top_k),
                    top_p=_optional(_check.number, "draft_top_p", draft_top_p),
                    min_p=_optional(_check.number, "draft_min_p", draft_min_p),
                )
        self._core = _core.Session(
            path=str(BUNDLED_MODEL) if model is None else hub.local_path("model", model),
            drafter=drafter,
            ngram=ngram if draft_model is None or cascade else None,
            draft_model=draft_model,
            n_gpu_layers=_optional(_check.integer, "n_gpu_layers", n_gpu_layers),
            n_ctx=_check.integer("n_ctx", _either(n_ctx, 0)),
            n_seq=_check.integer("n_seq", n_seq),
            n_batch=_check.integer("n_batch", n_batch),
            n_threads=_check.integer("n_threads", _either(n_threads, 0)),
            flash_attn=flash,
            kv_type=_optional(_check.text, "kv_type", kv_type),
            spec_length=None
            if spec_length == "auto"
            else _check.integer("spec_length", spec_length),
            corpus="" if corpus is None or draft is None else _check.path("corpus", corpus),
            exact=None if exact == "auto" else bool(exact),
            progress=self._progress.load(),
        )

    @classmethod
    def from_pretrained(
        cls,
        repo_id: str,
        filename: str | None = None,
        draft: Literal["auto", "ngram"] | str | os.PathLike[str] | Drafter | None = "auto",
        **options: Any,
    ) -> Self:
        """Open a model of the Hugging Face Hub, downloaded if the cache does not have it.

        Needs the package huggingface_hub (`pip install specllama[hub]`), whose cache, progress
        bars, tokens and variables (HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT, ...) it uses.
        Without network the cached file is taken. Other parts of a split model come along.

        Args:
            repo_id: "user/repo", or "user/repo:quant" for the file of that quant: as with
                llama.cpp's `-hf`, Q4_K_M if none is given, else Q8_0, else the first GGUF.
            filename: The file, or a glob pattern that one file of the repository fits, e.g.
                "*Q4_K_M.gguf"; not together with a quant.
            draft: As for the constructor, e.g. "hf://user/smaller-repo:Q8_0".
            **options: The other options of the constructor.

        Raises:
            ArgumentError: `repo_id` is no such name; or as for the constructor.
            ModelError: There is no such repository or file, several files fit, or there is no
                access; or as for the constructor.
            HubError: The Hub cannot be reached, the download breaks off or cannot be stored.
        """
        name = _check.text("repo_id", repo_id)
        if filename is not None:
            name = f"{name}/{_check.text('filename', filename)}"
        return cls(str(hub.HubName.parse(name)), draft, **options)

    def generate(
        self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]
    ) -> Generation:
        """Continue a prompt and return the whole.

        Args:
            prompt: A text, or token ids. Texts of special tokens in it become those tokens, and
                the model's BOS is put before it, as llama.cpp does.
            **options: See `GenerateOptions`: max_tokens, stop, echo, temperature, top_k, top_p,
                min_p, repeat_penalty, frequency_penalty, presence_penalty, penalty_last_n,
                logit_bias, logprobs, processed_logprobs, seed, acceptance, lenience, grammar,
                json_schema, reference, trace.

        Returns:
            The text, its tokens, why it ended, and statistics. After Ctrl-C, or an error on the
            way, `last` has what there was.

        Raises:
            ArgumentError: The prompt is empty, leaves no room in the context, or has ids that are
                no tokens; or an option is wrong.
            DecodeError: llama.cpp failed.
            ClosedError: The session is closed.
            BusyError: Another thread is using the session; with `n_seq` above 1: as many requests
                are unfinished.
        """
        return _whole(self.stream(prompt, **options))

    def stream(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Stream:
        """Continue a prompt and return an iterator over the chunks as they become certain.

        Arguments and errors are those of `generate`; `echo` concerns the text of
        `Stream.result()`. The stream may be left at any time.
        """
        return self._start(prompt, [], options)

    def replay(
        self,
        prompt: str | Iterable[int],
        text: str | Iterable[int],
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Generate as if the model had chosen a given text: for measuring on text of one's own.

        Every decode, choice, draft, verification and rewind is really done; only what the model
        chooses is put aside for what the text has there. So real text meets real cost, also with
        models too small to have written it.

        Args:
            prompt: As for `generate`.
            text: What is generated, as text or token ids; the context must have room for it.
            **options: As for `generate`, without stop, grammar and max_tokens, which have no say.

        Raises:
            ArgumentError: The text is empty, or as for `generate`.
        """
        for name in ("stop", "grammar", "json_schema", "max_tokens"):
            if name in options:
                raise ArgumentError(f"replay takes no {name}: the text decides.")
        tokens = (
            self.tokenize(text, add_special=False)
            if isinstance(text, str)
            else _check.tokens("text", text)
        )
        if not tokens:
            raise ArgumentError("The text to replay is empty; give at least one token.")
        return _whole(self._start(prompt, tokens, {**options, "max_tokens": len(tokens)}))

    def _start(
        self, prompt: str | Iterable[int], replayed: list[int], options: GenerateOptions
    ) -> Stream:
        checked = core_options(**options)
        reference = checked.reference
        if isinstance(reference, str):
            reference = self.tokenize(reference, add_special=False)
        if isinstance(prompt, str):
            if not prompt:
                raise ArgumentError("The prompt is empty; give at least one character.")
            tokens, text = self.tokenize(prompt), prompt
        else:
            tokens, text = _check.tokens("prompt", prompt), ""
        core = self._core.start(
            tokens,
            max_tokens=checked.max_tokens,
            stop=checked.stop,
            sampling=checked.sampling,
            reference=reference,
            replayed=replayed,
            trace=checked.trace,
        )
        if (checked.echo or checked.trace) and not text:
            text = self.detokenize(tokens)
        self._last = Record(
            core,
            echo=text if checked.echo else "",
            prompt=shortened(text) if checked.trace else "",
            # Not a method of this session, which would then hold itself.
            piece=partial(_piece, self._core) if checked.trace else None,
        )
        return Stream(self._last, len(tokens), self._progress.prefill())

    def chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answer the last message of a conversation, by the model's own chat template.

        Args:
            messages: As {"role": "user", "content": "..."}; the whole conversation, every time:
                what is known of it already is not decoded again.
            template_args: Passed to the template, e.g. {"enable_thinking": False}.
            **options: As for `generate`.

        Raises:
            ModelError: The model has no chat template.
            ArgumentError: The template refuses the messages; or as for `generate`.
        """
        return self.generate(self.render_chat(messages, template_args), **options)

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """The same as `chat`, chunk by chunk: see `stream`."""
        return self.stream(self.render_chat(messages, template_args), **options)

    def render_chat(
        self, messages: Sequence[Message], template_args: Mapping[str, Any] | None = None
    ) -> list[int]:
        """Return the token ids of the prompt that `chat` has continued."""
        # The template has written the special tokens itself.
        return self.tokenize(self.chat_template.render(messages, template_args), add_special=False)

    @property
    def chat_template(self) -> ChatTemplate:
        """The model's chat template. Raises ModelError if it has none."""
        if self._chat_template is None:
            bos, eos = (
                self.detokenize([token], special=True) if token >= 0 else ""
                for token in (self._core.bos, self._core.eos)
            )
            self._chat_template = ChatTemplate(self._core.chat_template, bos=bos, eos=eos)
        return self._chat_template

    @property
    def last(self) -> Generation | None:
        """The most recent generation as far as it came, also when it was interrupted. May be read
        from any thread."""
        return None if self._last is None else self._last.result()

    def tokenize(
        self, text: str, *, add_special: bool = True, parse_special: bool = True
    ) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: Any text.
            add_special: Put the model's BOS, and whatever else it wants, around it.
            parse_special: Read the texts of special tokens as those tokens.
        """
        return self._core.tokenize(
            _check.text("text", text),
            add_special=bool(add_special),
            parse_special=bool(parse_special),
        )

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """Return the text of token ids, U+FFFD for what is no UTF-8.

        Args:
            tokens: Token ids.
            special: Show the texts of special tokens, too.
        """
        return self._core.detokenize(_check.tokens("tokens", tokens), special=bool(special))

    @property
    def n_ctx(self) -> int:
        """Most tokens of prompt and generation together."""
        return self._core.n_ctx

    @property
    def n_vocab(self) -> int:
        """Number of tokens the model knows."""
        return self._core.n_vocab

    @property
    def n_threads(self) -> int:
        """Threads that compute."""
        return self._core.n_threads

    @property
    def model_description(self) -> str:
        """What the model file says it is: architecture, size and weight type."""
        return self._core.model_description

    def close(self) -> None:
        """Free the model and its memory. Later calls raise ClosedError; closing twice is fine."""
        self._core.close()

    def __enter__(self) -> SpecSession:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._core.closed:
            return "<SpecSession, closed>"
        return f"<SpecSession {self.model_description}, n_ctx={self.n_ctx}>"


def _piece(core: _core.Session, token: int) -> str:
    # The first token of a text loses its leading space in some vocabularies; the second does not.
    first = core.detokenize([token], special=True)
    return core.detokenize([token, token], special=True)[len(first) :]


def _whole(stream: Stream) -> Generation:
    """Read a stream to its end, and leave the session in order if that fails."""
    try:
        for _ in stream:
            pass
    finally:
        stream.close()
    return stream.result()


def _optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    return None if value is None else check(name, value)


def _first(value: T | None, other: T | None) -> T | None:
    return other if value is None else value


def _either(value: T | None, default: T) -> T:
    return default if value is None else value
