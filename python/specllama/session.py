"""The session: a model ready to generate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal, cast, overload

from typing_extensions import Self, Unpack

from specllama import _check, _core
from specllama._closing import close_at_exit
from specllama._progress import Progress
from specllama.drafter import Drafter
from specllama.errors import ArgumentError, BusyError
from specllama.model import hub
from specllama.model.backend import Backend
from specllama.model.bundled import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.model.chat_template import Message
from specllama.model.foreign_arguments import translating
from specllama.model.opening import check_draft, open_backend
from specllama.model.template_options import TemplateOptions
from specllama.remote.opening import TargetOptions, open_remote
from specllama.requests import beams
from specllama.requests.asynchronous import AsyncRequests
from specllama.requests.beams import Beam, BeamOptions
from specllama.requests.options import GenerateOptions
from specllama.requests.request import Request, are_several
from specllama.requests.stream import Generation, Stream

__all__ = ["BUNDLED_DRAFT", "BUNDLED_MODEL", "SpecSession"]


class SpecSession(AsyncRequests):
    """A GGUF model that generates with speculative decoding: the same tokens as plain decoding,
    sooner.

    Decoding is greedy unless a temperature is given. The KV memory stays between calls, so a
    prompt that begins like the previous one costs only its new tokens.

    Any thread may call any method at any time. `submit`, `agenerate`, `astream` and `generate` of
    several prompts leave the work to a thread of the session's own, where requests wait for each
    other. `stream`, and with n_seq=1 `generate` of one prompt, work in the thread that calls them;
    with n_seq=1 they raise BusyError while another thread has an unfinished generation. A forked
    process cannot use sessions that were opened before the fork.

    Args:
        model: Path of a GGUF file (the first part, if it is split), or its name on the Hugging Face
            Hub: "hf://user/repo", "hf://user/repo:quant" or "hf://user/repo/file.gguf" (see
            `from_pretrained`). None: the bundled model.
        draft: Who proposes tokens: "ngram" (what followed the same tokens before); the path or
            name, as above, of a smaller GGUF with the same vocabulary, or of a head for the model
            (EAGLE-3, or an assistant of Gemma 4); "mtp" (the layers of multi-token prediction in
            the model's own file; see docs/heads.md); a `Drafter`; or None for plain decoding.
            "auto": the bundled draft model for the bundled model, else "mtp" if the file has such
            layers, else "ngram".
        n_ctx: Most tokens of one request, prompt and generation together. None: the context the
            model was trained with, at most 8192, or less, with a notice, when memory is short.
        n_seq: Requests that are worked at together, 1 to 64; others wait their turn.
        n_batch: Most tokens decoded at once, n_seq to 8192; also the chunk of a prefill.
        n_threads: Threads. None: one per performance core.
        n_gpu_layers: Layers kept on GPUs: the last ones, the output counting as one more; -1: all
            that fit, with a notice if some do not; 0: no GPU is used at all. None: -1, or 0 with
            exact=True.
        n_cpu_moe: Layers, the first ones, whose experts' weights stay in main memory in any case.
            None: with n_gpu_layers -1 or None, of as few as are in the way of all layers fitting;
            else 0.
        tensor_split: Numbers in proportion to which the GPUs get layers, one for each GPU, in the
            order of `list_devices` or `device`. None: in proportion to free memory, or, if they do
            not fit so, as they fit.
        device: Names of the GPUs that hold these layers, as `list_devices` gives them, separated by
            commas; "none": no GPU is used. None: all GPUs.
        rpc: RPC servers of llama.cpp on other machines, "host:port,host:port", whose devices hold
            layers, too (docs/rpc.md; llama.cpp must have been built with it). The traffic is
            neither authenticated nor encrypted, and if a server is lost the process ends. A draft
            model stays on this machine.
        lora: LoRA adapters of the model (GGUF files, by convert_lora_to_gguf.py of llama.cpp): the
            path of one, or its name as above, a list of several (8 at most) or of pairs of a path
            and a scale, or a dict with the scale of each (1: as it was trained). A session with
            adapters is not exact, and a draft model has none.
        load_mode: How weights get into main memory: "mmap" (mapped from the file), "none" (read
            from it), "mlock" (and locked there, so that they are never swapped out), "mmap+mlock",
            "dio" (read without the system's cache), or "auto": mapped, unless a GPU does not
            support it.
        rope_scaling, rope_scale, rope_freq_base, yarn_orig_ctx: How positions are turned, for
            contexts longer than the model was trained with, of target and draft model alike:
            "none", "linear" or "yarn"; by how much the context is stretched; the base of the
            frequencies; for YaRN, the tokens of context that the model was trained with. None: as
            the model's file says. For Qwen2.5 with 131072 tokens, e.g.: "yarn", 4, None, 32768.
        flash_attn: Flash attention: True, False, or "auto" (where the device supports it, except
            on a CPU for heads with which it is much slower: docs/attention.md).
        kv_type: Type of the KV memory: "f16", "q8_0", or another of llama.cpp's; or two of them, of
            keys and of values, such as "q8_0/q5_1". None: "f16", or "bf16/f16" with exact=True.
        exact: Whether speculative and plain decoding must give the same tokens to the last one,
            near-ties included. That takes an x86-64 processor and no GPU, a KV memory in "bf16/f16"
            with flash attention, and weights of known types (docs/exactness.md). True: demand it;
            an error names the obstacle, if there is one. Longer prompts then take up to twice as
            long, and with weights of K-quant types (Q4_K_M and the like, without AMX) at most 7
            tokens are decoded at once. "auto": exact where that costs nothing: if kv_type is
            "bf16/f16", "bf16" or "q8_0", the fastest kernels for the weights are exact, and n_seq
            is 1. False: the other options decide. `Stats.exact` says whether a run was exact. (If
            n_seq is above 1, an exact session keeps the KV memory of each request apart, sliding
            windows keep the whole text, and only drafts of equal length are verified together.)
        target: URL of a `specllama serve` that has the model, e.g. "http://192.168.0.7:8080".
            Drafts are made here, by "ngram" (also "auto"), or by the given draft model or
            `Drafter`, and verified there (docs/remote.md). The server decides about the model:
            besides the options named target... and tokenizer, only draft, draft_n_gpu_layers,
            draft_device, draft_n_threads, draft_kv_type, n_seq, n_threads (the draft model's),
            spec_length, spec_tree, cascade, chat_template, template_args, max_queue, progress and
            verbose may be given. "sglang+http://...": an SGLang server (docs/remote-sglang.md).
            None: the model is here, and the four options that follow may not be given.
        target_key: The API key that the server wants.
        target_timeout: Most seconds until an answer of the server's is complete.
        tokenizer: For an SGLang target: path or name of a GGUF with its vocabulary; the weights are
            not read. None: the draft model's.
        corpus: Path of a file made by `specllama corpus build` with this model's vocabulary: texts
            to copy from in every call, besides prompt and generation. None: none. (Without effect
            with draft=None, and, unless drafts are trees, with a draft model and a fixed
            spec_length.)
        verifies: Whether drafts made elsewhere may be verified; `specllama serve` sets this.
        cache_ram: MiB of main memory for copies of what earlier calls left in the KV memory. A
            prompt that begins like one of them costs only its new tokens, as if that call had been
            the previous one. What was not needed for the longest goes first. 0: none; -1: no limit.
            (The copies take at most half of the memory that is free without them; on macOS, half of
            all memory.)
        spec_length: Most tokens drafted per round, 1 to 64; or "auto": as many as are expected to
            pay (perhaps none), judging by the decode times of this machine and what was accepted so
            far. (Which batch widths are decoded then depends on the clock: outside the exact
            configuration, use a fixed number to repeat a run.)
        spec_tree: Most guesses at a position that are verified in one decode, 1 to 8: second and
            third choices of a draft model, and proposals of several drafters. With a fixed
            spec_length all guesses are verified (spec_length times spec_tree at most 64), else
            those that pay. "off": 1, drafts are chains. "auto": also chains, since no measurement
            has shown trees to be faster by the clock. No value changes the tokens. (Drafts are
            always chains with recurrent and hybrid models, sliding windows, and exact=True with
            n_seq above 1; docs/trees.md.)
        cascade: Whether n-grams and matches share the work with a draft model when spec_length is
            "auto".
        ngram_order: Longest n-gram, 2 to 8.
        ngram_window: Number of latest tokens whose n-grams count; 0: all. (Matches to copy from
            are looked for in the whole text.)
        ngram_draw: Draw the n-gram drafts of sampled requests from relative frequencies, instead of
            taking the most frequent token. With acceptance="rejection", more is then accepted.
        ngram_max_bytes: Bound on the memory of the n-gram tables, at least 65536; finding matches
            may take as much again. The oldest entries go first.
        draft_n_gpu_layers, draft_device, draft_n_threads, draft_kv_type: As above, for the draft
            model. None: as for the model.
        draft_p_min: A draft ends before a token to which the draft model gives less than this
            probability; 0: off. (With acceptance="rejection": before a position where even the
            likeliest token has less.)
        draft_temperature, draft_top_k, draft_top_p, draft_min_p: How the draft model's tokens are
            chosen. None: as the model's. The output remains the model's own.
        chat_template: Jinja source of a chat template instead of the model's own, or a
            `pathlib.Path` of its file.
        template_args: What every chat passes to the chat template, e.g. {"enable_thinking": False};
            template_args of a single call override these.
        max_queue: How many requests may wait while n_seq are at work, 0 or more; one more raises
            QueueFullError.
        progress: True draws a bar for loading and for long prompts; a function is called with the
            stage ("load" or "prefill") and the fraction done, and may raise to stop the work.
        verbose: Show llama.cpp's log on stderr (for the whole process).

    Raises:
        ArgumentError: An option is out of range or of a wrong type.
        ModelError: The file is missing, damaged, or no model that generates text; or an RPC server
            cannot be reached.
        HubError: A model could not be downloaded.
        OutOfMemoryError: The context does not fit into memory.
        RemoteError: The server that has the target cannot be reached, refuses, or failed.
    """

    @translating
    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        draft: Literal["auto", "mtp", "ngram"] | str | os.PathLike[str] | Drafter | None = "auto",
        *,
        n_ctx: int | None = None,
        n_seq: int = 1,
        n_batch: int = 512,
        n_threads: int | None = None,
        n_gpu_layers: int | None = None,
        n_cpu_moe: int | None = None,
        tensor_split: Sequence[float] | None = None,
        device: str | None = None,
        rpc: str | None = None,
        lora: str
        | os.PathLike[str]
        | Sequence[str | os.PathLike[str] | tuple[str | os.PathLike[str], float]]
        | Mapping[Any, float]
        | None = None,
        load_mode: Literal["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"] = "auto",
        rope_scaling: Literal["none", "linear", "yarn"] | None = None,
        rope_scale: float | None = None,
        rope_freq_base: float | None = None,
        yarn_orig_ctx: int | None = None,
        flash_attn: bool | Literal["auto"] = "auto",
        kv_type: str | None = None,
        exact: bool | Literal["auto"] = "auto",
        corpus: str | os.PathLike[str] | None = None,
        verifies: bool = False,
        cache_ram: int = 0,
        target: str | None = None,
        target_key: str | None = None,
        target_timeout: float = 600.0,
        tokenizer: str | os.PathLike[str] | None = None,
        spec_length: int | Literal["auto"] = "auto",
        spec_tree: int | Literal["auto", "off"] = "auto",
        cascade: bool = True,
        ngram_order: int = 4,
        ngram_window: int = 0,
        ngram_max_bytes: int = 64 << 20,
        ngram_draw: bool = False,
        draft_n_gpu_layers: int | None = None,
        draft_device: str | None = None,
        draft_n_threads: int | None = None,
        draft_kv_type: str | None = None,
        draft_p_min: float = 0.0,
        draft_temperature: float | None = None,
        draft_top_k: int | None = None,
        draft_top_p: float | None = None,
        draft_min_p: float | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        template_args: Mapping[str, Any] | None = None,
        max_queue: int = 64,
        progress: bool | Callable[[str, float], object] = False,
        verbose: bool = False,
    ) -> None:
        if _check.flag("verbose", verbose):
            _core.set_verbose(True)
        template = TemplateOptions.checked(chat_template, template_args)
        self._progress = Progress(progress)
        max_queue = _check.integer("max_queue", max_queue, low=0)
        options: dict[str, Any] = {
            "n_ctx": n_ctx,
            "n_seq": n_seq,
            "n_batch": n_batch,
            "n_threads": n_threads,
            "n_gpu_layers": n_gpu_layers,
            "n_cpu_moe": n_cpu_moe,
            "tensor_split": tensor_split,
            "device": device,
            "rpc": rpc,
            "lora": lora,
            "load_mode": load_mode,
            "rope_scaling": rope_scaling,
            "rope_scale": rope_scale,
            "rope_freq_base": rope_freq_base,
            "yarn_orig_ctx": yarn_orig_ctx,
            "flash_attn": flash_attn,
            "kv_type": kv_type,
            "exact": exact,
            "corpus": corpus,
            "verifies": verifies,
            "cache_ram": cache_ram,
            "spec_length": spec_length,
            "spec_tree": spec_tree,
            "cascade": cascade,
            "ngram_order": ngram_order,
            "ngram_window": ngram_window,
            "ngram_max_bytes": ngram_max_bytes,
            "ngram_draw": ngram_draw,
            "draft_n_gpu_layers": draft_n_gpu_layers,
            "draft_device": draft_device,
            "draft_n_threads": draft_n_threads,
            "draft_kv_type": draft_kv_type,
            "draft_p_min": draft_p_min,
            "draft_temperature": draft_temperature,
            "draft_top_k": draft_top_k,
            "draft_top_p": draft_top_p,
            "draft_min_p": draft_min_p,
        }
        check_draft(draft)
        elsewhere = TargetOptions.checked(target, target_key, target_timeout, tokenizer)
        backend: Backend
        # `on_load` keeps the bar alive: were it dropped when loading ends, a Ctrl-C at that moment
        # would be raised in the bar's __del__, and lost there.
        with self._progress.load() as on_load:
            options["progress"] = on_load
            if elsewhere is None:
                backend, path = open_backend(model, draft, **options)
            else:
                arguments = signature(SpecSession).parameters
                defaults = {name: one.default for name, one in arguments.items()}
                backend, path = open_remote(
                    elsewhere,
                    draft,
                    {"model": model, **options},
                    defaults | {"progress": on_load},
                )
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
        """Open a model of the Hugging Face Hub, downloaded if the cache does not have it.

        Needs the package huggingface_hub (`pip install 'specllama[hub]'`), and uses its cache,
        progress bars, tokens and variables (HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT, ...).
        Without network the cached file is taken. All parts of a split model are downloaded.

        Args:
            repo_id: "user/repo", or "user/repo:quant" for the file of that quant. Without a quant,
                as with llama.cpp's `-hf`: Q4_K_M if there is one, else Q8_0, else the first GGUF.
            filename: The file, or a glob pattern that fits one file of the repository, e.g.
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

    @overload
    def generate(
        self, prompt: str | Iterable[int], *, n: int = 1, **options: Unpack[GenerateOptions]
    ) -> Generation: ...
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
        """Continue a prompt, or several, and return the whole.

        Args:
            prompt: A text, or token ids: a list or an integer array, for example. Texts of special
                tokens in a text become those tokens, and the model's BOS is put before it, as
                llama.cpp does. A list of prompts gives a list of results in the same order, each
                as if it had been alone; an empty list gives an empty one.
            n: Number of choices, 1 to 4096. The result is the first, whose `choices` has all. The
                first has the seed that was given or a fresh one; the seed of each other is derived
                from it.
            **options: See `GenerateOptions`.

        Returns:
            The text, its tokens, why it ended, and statistics. If Ctrl-C or an error interrupts the
            call, `last` has what was generated until then.

        Raises:
            ArgumentError: The prompt is empty, leaves no room in the context, or has ids that are
                not tokens; or an option is wrong, or not available with this model.
            DecodeError: llama.cpp failed.
            ClosedError: The session is closed.
            BusyError: With n_seq=1: another thread has an unfinished generation. Or a drafter of
                the session called this.
        """
        if isinstance(prompt, list) and not prompt:
            return []
        if are_several(prompt):
            return self._wait_for_all(cast(Any, prompt), n, options)
        return self._continued(cast(Any, prompt), n, options)

    def beam_search(
        self, prompt: str | Iterable[int], n_beams: int, **options: Unpack[BeamOptions]
    ) -> list[Beam]:
        """Return the continuations of a prompt that score best, the best first, by the rules of
        Hugging Face's transformers (docs/beams.md). The search runs in the calling thread, and all
        other requests wait until it is over; `close` ends it.

        Args:
            prompt: As for `generate`, but one only.
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
        """Continue a prompt and return an iterator over the chunks as they become certain.

        Arguments and errors are those of `generate`; BusyError is also raised when n_seq
        generations are unfinished. `echo` affects only the text of `Stream.result()`. The stream
        may be left at any time.
        """
        return self._start(Request.make(self, prompt, options))

    def replay(
        self,
        prompt: str | Iterable[int],
        text: str | Iterable[int],
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Generate as if the model had chosen a given text: for measuring on text of one's own.

        Every decode, choice, draft, verification and rewind is really done; only the token that the
        model chooses is replaced by the token of the text. So real text meets real cost, also with
        models too small to have written it.

        Args:
            prompt: As for `generate`.
            text: What is generated, as text or token ids; the context must have room for it.
            **options: As for `generate`, without stop, grammar, json_schema and max_tokens.

        Raises:
            ArgumentError: The text is empty, or as for `generate`.
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
        options = {**options, "max_tokens": len(tokens)}
        return self._start(Request.make(self, prompt, options, replayed=tokens)).run()

    def chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answer the last message of a conversation, by the model's own chat template.

        Args:
            messages: As {"role": "user", "content": "..."}; the whole conversation, every time.
                The part that is in the KV memory already is not decoded again.
            template_args: Passed to the template, e.g. {"enable_thinking": False}.
            n, **options: As for `generate`.

        Raises:
            ModelError: The model has no chat template.
            ArgumentError: The template refuses the messages; or as for `generate`.
        """
        return self._continued(self.render_chat(messages, template_args), n, options)

    def stream_chat(
        self,
        messages: Sequence[Message],
        *,
        template_args: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """The same as `chat`, chunk by chunk: see `stream`."""
        return self.stream(self.render_chat(messages, template_args), **options)

    def infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        n: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Fill a gap in a text, by a model that was trained for it.

        Args:
            prefix, suffix: The text before and after the gap. Together they may take three quarters
                of the context: the parts nearest to the gap are read, and the rest is a
                `reference` to copy from.
            files: Texts of other files by their names, the most important last.
            n, **options: As for `generate`.

        Raises:
            ModelError: The model has no tokens for filling in the middle.
            ArgumentError: As for `generate`.
        """
        prompt, options = self._infill_request(prefix, suffix, files, options)
        return self._continued(prompt, n, options)

    def stream_infill(
        self,
        prefix: str,
        suffix: str,
        *,
        files: Mapping[str, str] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """The same as `infill`, chunk by chunk: see `stream`."""
        prompt, options = self._infill_request(prefix, suffix, files, options)
        return self.stream(prompt, **options)

    @property
    def last(self) -> Generation | None:
        """The most recent generation as far as it came, also when it was interrupted. Of several
        that began together: the one that began last. None after a beam search. May be read from any
        thread."""
        return self._last()

    def close(self) -> None:
        """Free the model and its memory, and end unfinished generations. Later calls raise
        ClosedError; closing twice is fine. (In a forked process nothing is freed: the memory is
        shared.)

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
        """Continue one prompt: in the calling thread, which saves a hand-over, if there is one
        place and one choice."""
        if n == 1 and self._backend.n_seq == 1:
            return self.stream(prompt, **options).run()
        (whole,) = self._wait_for_all([prompt], n, options)
        return whole

    def _start(self, request: Request) -> Stream:
        state = request.begin(self._free_backend)
        # The stream comes first: where Ctrl-C interrupts this, it is dropped, and so cancelled.
        stream = Stream(state, len(request.tokens), self._progress.prefill())
        self._last = state.result
        return stream
