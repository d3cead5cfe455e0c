"""The session: a model ready to generate."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from typing_extensions import Self

from specllama import _check, _core, hub
from specllama._progress import Progress
from specllama.drafter import Drafter
from specllama.errors import ArgumentError
from specllama.sync_model import SyncModel

T = TypeVar("T")

_MODELS = Path(_core.__file__).parent / "models"

BUNDLED_MODEL = _MODELS / "target-q8_0.gguf"
"""The model that a session without a model uses: it continues Python in the style of the standard
library; good for a try and for tests."""

BUNDLED_DRAFT = _MODELS / "draft-q8_0.gguf"
"""A smaller model of the same vocabulary, to draft for it."""


class SpecSession(SyncModel):
    """A GGUF model that generates with speculative decoding: the same tokens as without, sooner.

    Decoding is greedy unless a temperature is given. The KV memory stays between calls, so that a
    prompt which begins like the one before costs only what is new.

    `submit`, `agenerate`, `astream` and `generate` of several prompts leave the work to a thread of
    the session's own, and may be called from any thread, at any time. `stream`, and with n_seq=1
    `generate` of one prompt, work in the thread that calls them: with n_seq=1 the session may move
    between threads then but not be used by two at once.

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
        n_seq: Requests worked at together, 1 to 64; others wait their turn.
        n_batch: Most tokens decoded at once, n_seq to 8192; the chunk of a prefill.
        n_threads: Threads. None: one per performance core.
        n_gpu_layers: Layers kept on the GPU; -1: all; 0: the GPU is not used at all. None: -1, or 0
            with exact=True.
        device: Names of the GPUs that hold them, as `list_devices` gives them, separated by commas;
            "none": no GPU is used. None: all.
        flash_attn: Flash attention: True, False, or "auto" (where the device has it).
        kv_type: Type of the KV memory: "f16", "q8_0", or another of llama.cpp's. None: "f16", or
            "q8_0" where the session is exact.
        exact: Whether speculative and plain decoding must give the same tokens to the last one,
            near-ties included. That takes an x86-64 processor and no GPU, a Q8_0 KV memory with
            flash attention, and weights of types that docs/exactness.md lists, K-quants and floats
            among them. True: have it so, or say what is in the way. "auto": have it so where that
            costs next to nothing, as for Q8_0 and Q4_0 weights, unless another option contradicts
            or n_seq is above 1. False: leave it to the other options. `Stats.exact` says whether a
            run had it. (With n_seq above 1 the KV memories of the requests then lie apart, those of
            sliding windows keep the whole text, and only drafts of equal length are verified
            together. K-quants without AMX are decoded at most 7 tokens at once.)
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
        ngram_window: Only n-grams of the last so many tokens count; 0: all. (Matches to copy from
            are looked for in the whole text.)
        ngram_draw: Draw the n-gram drafts of sampled requests from relative frequencies, instead of
            taking the most frequent token: more is accepted so with acceptance="rejection".
        ngram_max_bytes: Bound on the n-gram tables' memory, at least 65536, and again on that of
            finding matches; what is old goes first.
        draft_n_gpu_layers, draft_device, draft_n_threads, draft_kv_type: As above, for the draft
            model. None: as for the model.
        draft_p_min: A draft ends before a token that the draft model gives less than this
            probability; 0: off. (With acceptance="rejection": whose likeliest alternative has
            less.)
        draft_temperature, draft_top_k, draft_top_p, draft_min_p: How the draft model's tokens are
            chosen. None: as the model's. The output remains the model's own.
        max_queue: How many requests may wait while n_seq are at work, 0 or more; one more raises
            QueueFullError.
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
        device: str | None = None,
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
        draft_device: str | None = None,
        draft_n_threads: int | None = None,
        draft_kv_type: str | None = None,
        draft_p_min: float = 0.0,
        draft_temperature: float | None = None,
        draft_top_k: int | None = None,
        draft_top_p: float | None = None,
        draft_min_p: float | None = None,
        max_queue: int = 64,
        progress: bool | Callable[[str, float], object] = False,
        verbose: bool = False,
    ) -> None:
        if verbose:
            _core.set_verbose(True)
        reports = Progress(progress)
        max_queue = _check.integer("max_queue", max_queue, low=0)
        context = partial(
            _core.ContextOptions,
            n_ctx=_check.integer("n_ctx", _first(n_ctx, 0)),
            n_seq=_check.integer("n_seq", n_seq),
            n_batch=_check.integer("n_batch", n_batch),
            flash_attn=_check.switch("flash_attn", flash_attn),
        )
        ngram = _core.NGramOptions(
            max_order=_check.integer("ngram_order", ngram_order),
            window=_check.integer("ngram_window", ngram_window),
            max_bytes=_check.integer("ngram_max_bytes", ngram_max_bytes, low=0, high=2**62),
            draw=bool(ngram_draw),
        )
        drafter = draft if isinstance(draft, Drafter) else None
        draft_path = _draft_path(draft, bundled=model is None)
        draft_model = None
        if draft_path is not None:
            draft_model = _core.DraftModelOptions(
                model=_core.ModelOptions(
                    path=draft_path,
                    n_gpu_layers=_optional(
                        _check.integer,
                        "draft_n_gpu_layers",
                        _first(draft_n_gpu_layers, n_gpu_layers),
                    ),
                    device=_check.text("draft_device", _first(draft_device, device, "")),
                ),
                context=context(
                    n_threads=_check.integer(
                        "draft_n_threads", _first(draft_n_threads, n_threads, 0)
                    ),
                    kv_type=_optional(_check.text, "draft_kv_type", _first(draft_kv_type, kv_type)),
                ),
                p_min=_check.number("draft_p_min", draft_p_min),
                temperature=_optional(_check.number, "draft_temperature", draft_temperature),
                top_k=_optional(_check.integer, "draft_top_k", draft_top_k),
                top_p=_optional(_check.number, "draft_top_p", draft_top_p),
                min_p=_optional(_check.number, "draft_min_p", draft_min_p),
            )
        path = str(BUNDLED_MODEL) if model is None else hub.local_path("model", model)
        options = _core.SessionOptions(
            model=_core.ModelOptions(
                path=path,
                n_gpu_layers=_optional(_check.integer, "n_gpu_layers", n_gpu_layers),
                device=_check.text("device", _first(device, "")),
            ),
            context=context(
                n_threads=_check.integer("n_threads", _first(n_threads, 0)),
                kv_type=_optional(_check.text, "kv_type", kv_type),
            ),
            spec_length=(
                None if spec_length == "auto" else _check.integer("spec_length", spec_length)
            ),
            draft_model=draft_model,
            corpus="" if corpus is None or draft is None else _check.path("corpus", corpus),
            exact=_check.switch("exact", exact),
        )
        # Held by a name: were it dropped when loading ends, a Ctrl-C of that time would be raised
        # in the bar's __del__, and lost there.
        on_load = reports.load()
        by_ngrams = draft is not None and drafter is None and (draft_model is None or cascade)
        core = _core.Session(
            options,
            drafter=drafter,
            ngram=ngram if by_ngrams else None,
            progress=on_load,
        )
        super().__init__(core, path, max_queue=max_queue, progress=reports)

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

    def close(self) -> None:
        """Free the model and its memory, and end what is unfinished. Later calls raise ClosedError;
        closing twice is fine."""
        self._end_worker()
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


def _draft_path(draft: Any, *, bundled: bool) -> str | None:
    """Return the file that drafts, if one does; `bundled`: for the bundled model."""
    if draft is None or isinstance(draft, Drafter):
        return None
    if not isinstance(draft, (str, os.PathLike)):
        raise ArgumentError(
            f'draft must be "auto", "ngram", the path of a GGUF file, a Drafter or None, '
            f"not {draft!r}."
        )
    if draft == "auto":
        return str(BUNDLED_DRAFT) if bundled else None
    return None if draft == "ngram" else hub.local_path("draft", draft)


def _optional(check: Callable[[str, Any], T], name: str, value: Any) -> T | None:
    return None if value is None else check(name, value)


def _first(*values: Any) -> Any:
    """Return the first that is not None, if there is one."""
    return next((value for value in values if value is not None), None)
