"""The C++ core. Classes and functions that `specllama` re-exports are described here. For all
others, this file has the types, and the C++ header has the contract. `Final` marks attributes that
Python cannot set; those of a `Stream` or a `Session` may change.

Token ids passed as Iterable[int] are read in place if they are an int32 array, else copied. A
returned NDArray belongs to the caller: it is moved out of the core, not copied.
"""

import enum
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, overload

import numpy as np
from numpy.typing import NDArray
from specllama.drafter import Drafter

version: str
llama_cpp_version: str

class Device:
    """A processor on which llama.cpp can compute.

    Attributes:
        name: Its name in llama.cpp, as in the option `device`.
        description: Its description by the backend.
        memory_free, memory_total: Its memory in bytes.
        takes_layers: Whether it can hold layers of a model, as GPUs do.
    """

    name: Final[str]
    description: Final[str]
    memory_free: Final[int]
    memory_total: Final[int]
    takes_layers: Final[bool]

def list_devices(rpc: str = "") -> list[Device]:
    """Return the processors on which llama.cpp can compute: first those of the RPC servers, then
    those of this machine.

    Args:
        rpc: RPC servers as "host:port,host:port" (docs/guides/rpc.md); "": none.

    Raises:
        ArgumentError: `rpc` is not of this form, or llama.cpp was built without RPC.
        ModelError: A server cannot be reached, or has another version.
    """

def cpu_kernels() -> str:
    """Return the kinds of CPU kernels for weights on this machine, e.g. "AMX, repacked, plain". A
    kind that is not used is followed by the reason in brackets."""

def has_amx() -> bool:
    """Whether llama.cpp has AMX kernels and the CPU has AMX."""

def try_amx(
    *, command: list[str], expected: str, libraries: str, seconds: float, key: str, folder: str
) -> tuple[bool, str]:
    """Test whether AMX works, as sessions do, but with a given program."""

def cache_folder() -> Path | None:
    """Return the folder for data that is kept between runs: SPECLLAMA_CACHE, or "specllama" in the
    user's cache folder; None if there is none."""

def set_verbose(verbose: bool) -> None:
    """Show llama.cpp's informational messages on stderr, for the whole process."""

class ModelFile:
    """Data of a model, from its GGUF file and, if it is split, its other parts."""

    architecture: Final[str]
    weight_type: Final[str]
    n_parameters: Final[int]
    weight_bytes: Final[int]
    n_tokens: Final[int]
    width: Final[int]
    vocabulary: Final[int]
    can_draft: Final[bool]
    head: Final[str]
    brings_head: Final[bool]

def read_model_file(path: str) -> ModelFile:
    """Read the headers and the vocabulary of a GGUF file, but not its weights."""

class ProjectorFile:
    """Data of a multimodal projector, from its file.

    Attributes:
        sees, hears: Whether it encodes images, and sounds.
        width: Size of the embeddings of its text model.
    """

    sees: Final[bool]
    hears: Final[bool]
    width: Final[int]

def read_projector(path: str) -> ProjectorFile:
    """Read the header of a multimodal projector's GGUF file. Raises ModelError."""

class Media:
    """An image or a sound.

    Attributes:
        id: A hash of the content.
    """

    @staticmethod
    def image(rgb: NDArray[np.uint8]) -> Media:
        """Make an image from RGB pixels, shape (height, width, 3). Raises ArgumentError."""

    @staticmethod
    def audio(samples: NDArray[np.float32]) -> Media:
        """Make a sound from the samples of one channel, -1 to 1, at the session's `audio_rate`.
        Raises ArgumentError."""

    id: Final[str]

class MediaPrompt:
    """A prompt with images or sounds, for the session that made it.

    Attributes:
        tokens: Token ids of the texts; negative ids for images and sounds.
        n_rows: Rows that it takes in the KV memory. They count as its tokens.
    """

    tokens: Final[NDArray[np.int32]]
    n_rows: Final[int]

MOST_IMAGE_BYTES: Final[int]
MOST_IMAGE_PIXELS: Final[int]

def check_image_size(name: str, width: int, height: int) -> None:
    """Raise ArgumentError, with a sentence that begins with `name`, if an image of this size in
    pixels is refused: one without pixels or with more than MOST_IMAGE_PIXELS, or with a side more
    than 200 times the other."""

def check_head(head: str, target: str) -> None:
    """Raise unless a head can draft for a model."""

def automatic_draft(target: str, *, bundled_draft: str) -> str:
    """Return the drafter for a model with draft="auto": the path of a draft model or head (for the
    bundled target the bundled one, else one found next to the model), "mtp", or "ngram"."""

def brings_head(path: str) -> bool:
    """Return whether a model's file has multi-token prediction layers that can draft for it."""

def slow_types(path: str) -> str:
    """Return a sentence about the types of a model's weights that are slow on this machine's CPU,
    with the speed of decodes in other types; "" if no type is slow."""

def draft_in_type(draft: str, *, target: str, type: str) -> str:
    """Return the file of a draft model for the option draft_type=`type`: the given file, or a copy
    in another type. The copy is made if it does not exist."""

class TokenLogprobs:
    """Log-probabilities (natural logarithms) at one position.

    Attributes:
        token: The token that was generated.
        logprob: The log-probability of this token.
        top: The most likely tokens with their log-probabilities, the likeliest first.
    """

    def __init__(self, *, token: int, logprob: float, top: list[tuple[int, float]]) -> None: ...
    token: Final[int]
    logprob: Final[float]
    top: Final[list[tuple[int, float]]]

class Chunk:
    """A step of a generation. All chunks together have its whole text and all its tokens.

    Attributes:
        text: Whole characters; empty while a character or a possible stop string is incomplete.
        token: Token id; None for text before a stop string that began inside a token.
        from_draft: Whether the token was drafted and accepted.
        logprobs: Log-probabilities at the token's position, if requested; else None.
        finish_reason: Why the generation ended; None except on its last chunk.
    """

    text: Final[str]
    token: Final[int | None]
    from_draft: Final[bool]
    logprobs: Final[TokenLogprobs | None]
    finish_reason: Final[Literal["stop", "length"] | None]

class Seconds:
    """Time spent in the parts of a generation, inside the library, in seconds of a monotonic clock.

    Attributes:
        prefill: Decoding the prompt, including the logits for the first token.
        draft: Drafting.
        verify: The target's decodes after the prefill, and rewinding the KV memory.
        choose: Choosing tokens from logits.
        text: Turning tokens into text and looking for stop strings.
        total: Everything, from start to finish.
    """

    prefill: Final[float]
    draft: Final[float]
    verify: Final[float]
    choose: Final[float]
    text: Final[float]
    total: Final[float]

class Stats:
    """Statistics of a generation. Counts are exact.

    Attributes:
        seed: Seed of the sampling, given or fresh.
        exact: Whether the session was in the configuration in which speculation changes no token.
        same_widths: The smallest and the largest number of tokens per decode at which the session
            computes the same bits for a token; only decodes of other widths can change a near-tie.
            None: unknown for all widths, or the target is remote.
        n_threads: Threads of the target's last decode; 0: it is remote, or has not decoded.
        prompt_tokens: Tokens of the prompt.
        reused_tokens: Prompt tokens that were already in the KV memory.
        slot: The request's slot of the KV memory; -1 before it begins.
        generated_tokens: Tokens generated.
        rounds: Target decodes that chose tokens.
        drafted: Draft tokens that were verified.
        accepted: Draft tokens equal to the target's choice, including those that a stop condition
            then cut off.
        forced: Tokens that were not verified because the grammar allowed no other; the token that
            ends the text may be one of them. They belong to no round.
        chosen_tokens: Tokens chosen by rounds and grammars: those generated, one that ends the
            text, and those that a stop string cut off.
        draft_decoded_tokens: Tokens that the draft model decoded; 0 without one.
        acceptance_rate: accepted / drafted; 0 if nothing was drafted.
        tokens_per_round: chosen_tokens / rounds; 1 for plain decoding.
        tokens_per_second: Tokens generated per second after the prefill.
        prompt_tokens_per_second: Prompt tokens decoded per second of prefill.
        seconds: Time by part of the work.
        drafted_by_position: [i]: draft tokens at position i (from 0) of their drafts.
        accepted_by_position: [i]: how many of these were accepted.
        drafted_by_rank: [r]: draft tokens that were candidate r (from 0) at their position.
        accepted_by_rank: [r]: how many of these were accepted.
        by_round: (drafted, accepted) of every round; (0, 0) for a round without a draft.
        by_drafter: (drafted, accepted) by source. "match": copied from an earlier position of the
            text after the same tokens; "corpus": likewise, from the corpus; "history": likewise,
            from earlier requests; "ngram": n-gram frequencies; "grammar": tokens that the grammar
            allows; "model": a draft model; "other": any other drafter, and in a beam search also
            predictions from earlier results of the target.
        decode_seconds: [n - 1]: the planner's estimate, at the end of the generation, of the
            seconds of a target decode of n tokens at an empty context; 0 if not measured. Empty
            with a fixed spec_length, or without drafts.
        draft_step_seconds: The same estimate for one step of the draft model; 0 without one.
        draft_break_even: The share of its tokens that must be accepted for a draft model to pay,
            with these costs at the length of this text. More than 1: it cannot pay. 0: unknown, or
            there is no draft model.
        drafter_errors: Rounds without a draft because the drafter failed.
        last_drafter_error: Message of the last of these errors; "" if there was none.
    """

    seed: Final[int]
    exact: Final[bool]
    same_widths: Final[tuple[int, int] | None]
    n_threads: Final[int]
    prompt_tokens: Final[int]
    reused_tokens: Final[int]
    slot: Final[int]
    generated_tokens: Final[int]
    rounds: Final[int]
    drafted: Final[int]
    accepted: Final[int]
    forced: Final[int]
    chosen_tokens: Final[int]
    draft_decoded_tokens: Final[int]
    acceptance_rate: Final[float]
    tokens_per_round: Final[float]
    tokens_per_second: Final[float]
    prompt_tokens_per_second: Final[float]
    seconds: Final[Seconds]
    drafted_by_position: Final[list[int]]
    accepted_by_position: Final[list[int]]
    drafted_by_rank: Final[list[int]]
    accepted_by_rank: Final[list[int]]
    by_round: Final[list[tuple[int, int]]]
    by_drafter: Final[dict[str, tuple[int, int]]]
    decode_seconds: Final[list[float]]
    draft_step_seconds: Final[float]
    draft_break_even: Final[float]
    drafter_errors: Final[int]
    last_drafter_error: Final[str]
    def to_dict(self) -> dict[str, object]:
        """Return all statistics as a dict of JSON values."""

class DraftedToken:
    """A token that was proposed and verified.

    Attributes:
        token: Token id.
        drafter: "match", "corpus", "history", "ngram", "grammar", "model" or "other", as in
            `Stats.by_drafter`.
        length: For a match ("match", "corpus", "history"): how many tokens before it agree with
            the tokens before the copied one. For an n-gram: its order. For a grammar: bytes
            predicted after it. Else 0.
        confidence: For an n-gram: its `Prediction.confidence`. For a draft model: the token's
            probability. For a match: 0 if the copied token was itself where a copy failed, else 1.
            For a grammar: below 1 if other tokens are allowed, but this one came last in such a
            context: the chance that it comes again. Else 1.
        parent: Index, in the round's draft, of the draft token before it; None: it follows the
            committed tokens.
        accepted: Whether the target accepted it.
    """

    token: Final[int]
    drafter: Final[str]
    length: Final[int]
    confidence: Final[float]
    parent: Final[int | None]
    accepted: Final[bool]

class RoundTrace:
    """The record of one round.

    Attributes:
        position: Number of tokens generated before the round.
        draft: The verified tokens, each after its parent. If there are several candidates at a
            position, the likelier one comes first, with all tokens that follow it.
        accepted: How many of the draft tokens were accepted.
        next: The target's own token after the accepted ones; None if nothing could follow.
        forced: The tokens after `next` that were not verified because the grammar allowed no other.
        draft_seconds: Seconds of drafting.
        decode_seconds: Seconds of the target's decode; 0 for the round that ended the prefill.
        expected_tokens: Tokens that the planner expected from the round; 0 with a fixed
            spec_length, and for a draft given with the request.
        expected_seconds: Seconds of drafting and decoding that the planner expected; 0 if
            expected_tokens is 0.
    """

    position: Final[int]
    draft: Final[list[DraftedToken]]
    accepted: Final[int]
    next: Final[int | None]
    forced: Final[list[int]]
    draft_seconds: Final[float]
    decode_seconds: Final[float]
    expected_tokens: Final[float]
    expected_seconds: Final[float]

class Stream:
    """A generation in progress."""

    def step(self) -> list[Chunk] | None:
        """Return the new chunks; if there are none yet, first advance the session by a step. None
        after the last chunk."""

    def advance(self) -> bool:
        """As `step`, but without returning chunks; False if there are no more."""

    def take(self) -> list[Chunk]:
        """Return the new chunks, without a step; if `done`, they are the last ones."""

    def cancel(self) -> None:
        """End the generation at once."""

    done: Final[bool]
    finish_reason: Final[Literal["stop", "length"] | None]
    stop_string: Final[str]
    in_prompt: Final[bool]
    n_prefilled: Final[int]
    tokens: Final[list[int]]
    text: Final[str]
    logprobs: Final[list[TokenLogprobs]]
    stats: Final[Stats]
    trace: Final[list[RoundTrace]]

class Beam:
    """A text found by a beam search; see `specllama.Beam`."""

    text: Final[str]
    tokens: Final[list[int]]
    logprob: Final[float]
    score: Final[float]
    finish_reason: Final[Literal["stop", "length"]]

class BeamResult:
    """The result of a beam search: its beams, the best first, and the statistics of the search."""

    beams: Final[list[Beam]]
    stats: Final[Stats]

class Switch(enum.Enum):
    """An option that is on, off, or decided automatically."""

    automatic = 0
    on = 1
    off = 2

class LoraAdapter:
    """A LoRA adapter's file and its scale."""

    def __init__(self, *, path: str, scale: float) -> None: ...
    path: Final[str]
    scale: Final[float]

class Option:
    """A line of the tables of options; see csrc/include/specllama/option.h.

    Attributes:
        kind: "flag", "integer", "number", "text", "texts", "numbers", "choice", "switch", or "" for
            other types.
        optional: Whether None means that it is not given.
        by_default: The default in words, with the meaning of special values.
        range: The numbers allowed, in words; "": any.
    """

    name: Final[str]
    help: Final[str]
    kind: Final[str]
    optional: Final[bool]
    default: Final[Any]
    by_default: Final[str]
    range: Final[str]
    low: Final[float]
    high: Final[float]
    above_low: Final[bool]
    choices: Final[tuple[str, ...]]
    special: Final[str]
    words: Final[tuple[str, ...]]
    flags: Final[tuple[str, ...]]
    value: Final[str]
    field: Final[str]
    aliases: Final[tuple[str, ...]]

def generate_options() -> list[Option]: ...
def sampling_options() -> list[Option]: ...
def session_options() -> list[Option]: ...
def ngram_options() -> list[Option]: ...
def beam_options() -> list[Option]: ...

class NGramOptions:
    """Options of the n-gram drafter, those of `ngram_options`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class SessionOptions:
    """Options of a session, those of `session_options`; see `specllama.SpecSession`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class AcceptanceRule(enum.Enum):
    """The rule by which draft tokens are accepted."""

    coupled = 0
    rejection = 1

class SpecType(enum.Enum):
    """The drafters that may draft."""

    auto = 0
    none = 1
    model = 2
    ngram = 3

class GrammarSyntax(enum.Enum):
    """The syntax of a grammar."""

    gbnf = 0
    lark = 1
    regex = 2
    json_schema = 3

class SamplingOptions:
    """Options of sampling, those of `sampling_options`; see `specllama.GenerateOptions`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class EarlyStopping(enum.Enum):
    """When a beam search ends."""

    no = 0
    yes = 1
    never = 2

class BeamOptions:
    """Options of a beam search, those of `beam_options`; see `specllama.BeamOptions`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class RequestDraft:
    """A draft given with a request. branches: alternatives to parts of the tokens, as pairs: the
    number of tokens before the branch, and the branch's token ids, at least one."""

    def __init__(self, *, tokens: Iterable[int], branches: list[tuple[int, list[int]]]) -> None: ...
    tokens: Final[list[int]]
    branches: Final[list[tuple[int, list[int]]]]

class GenerateOptions:
    """Options of a generation, those of `generate_options`; see `specllama.GenerateOptions`.
    replayed: tokens to generate instead of the model's choice; [] (default): the model chooses.
    generated: tokens that an earlier request generated before it was interrupted. draft: the draft
    to verify in one round; None: the session drafts. sampling: all options of sampling."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Sampler:
    """The choice rule by itself: the argmax over the kept tokens of logit / T + Gumbel noise."""

    def __init__(self, options: SamplingOptions, n_vocab: int, texts: list[bytes] = []) -> None: ...
    def choose(self, logits: NDArray[np.float32], context: Iterable[int]) -> int:
        """Return the token after `context`. The position of the choice is the length of the
        context."""

    def choose_many(self, logits: NDArray[np.float32], first: int, count: int) -> NDArray[np.int32]:
        """Return the choices from the same logits at positions first, first + 1, ..."""

    def speculate_many(
        self,
        logits: NDArray[np.float32],
        draft_logits: NDArray[np.float32],
        first: int,
        count: int,
        point_mass: bool = False,
        n_guesses: int = 1,
    ) -> NDArray[np.int32]:
        """Return the tokens drafted from `draft_logits`, and those then generated from `logits`, at
        positions first, first + 1, ..."""

    seed: Final[int]

def gumbel(bits: int) -> float:
    """Return the standard Gumbel noise for 64 random bits; always finite."""

def probability(logits: NDArray[np.float32], token: int) -> float:
    """Return the softmax probability of a token, to about six digits."""

def spec_cli_flags() -> dict[str, bool]:
    """Return the options of spec-cli, and for each whether a value follows."""

def check_spec_cli(arguments: Sequence[str]) -> None:
    """Raise ArgumentError for errors of a command line of spec-cli that can be found without
    opening a model."""

def spec_cli(
    arguments: Sequence[str | bytes],
    chat: Callable[[Session, str | None, str, list[str]], list[int] | MediaPrompt],
) -> int:
    """Run spec-cli in this process and return its exit code. It handles Ctrl-C itself from then on.

    Args:
        arguments: The path of its executable, and its command line.
        chat: Returns the prompt for a message, after an optional system message; the paths of
            images and sounds, which come before the message, are the last argument. It is called
            with a session whose model has a chat template, and must not keep the session.
    """

def set_llguidance_path(path: str) -> None:
    """Set the file of llguidance's extension module, which is loaded with the first grammar. "": it
    is not installed, and grammars raise ArgumentError."""

def choice_seed(seed: int, choice: int) -> int:
    """Return the seed of choice number `choice` of a request; that of choice 0 is `seed`."""

class VocabularyTable:
    """A vocabulary without its tokenizer."""

    def __init__(
        self, *, pieces: Sequence[bytes], hidden: list[int], ends: list[int], fingerprint: int
    ) -> None: ...
    pieces: Final[list[bytes]]
    hidden: Final[list[int]]
    ends: Final[list[int]]
    fingerprint: Final[int]

class VerifierInfo:
    """Properties of a remote target, as those of a `Session`, and the seconds of some round trips
    to it."""

    def __init__(
        self,
        *,
        description: str,
        kernels: str,
        n_ctx: int,
        n_threads: int,
        vocabulary: int,
        bos: int,
        eos: int,
        fim: Sequence[int],
        chat_template: str | None,
        max_draft_length: int,
        max_candidates: int,
        max_draft_tokens: int,
        table: VocabularyTable,
        decode_seconds: list[float],
        round_trips: list[float],
    ) -> None: ...

class VerifyAnswer:
    """The answer of a remote target to a draft."""

    def __init__(
        self,
        *,
        tokens: list[int],
        logprobs: list[TokenLogprobs],
        seconds: float,
        n_verified: int,
        finish_reason: Literal["stop", "length"] | None,
        exact: bool,
        n_reused: int,
    ) -> None: ...
    tokens: Final[list[int]]
    logprobs: Final[list[TokenLogprobs]]
    seconds: Final[float]
    n_verified: Final[int]
    finish_reason: Final[Literal["stop", "length"] | None]
    exact: Final[bool]
    n_reused: Final[int]

class Session:
    """A model with its KV memory and a drafter; or a drafter for a remote target, which it calls
    through a `specllama.remote.verifier.Verifier`."""

    @overload
    def __init__(
        self,
        options: SessionOptions,
        *,
        drafter: Drafter | None,
        ngram: NGramOptions | None,
        progress: Callable[[float], object] | None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        options: SessionOptions,
        *,
        verifier: object,
        info: VerifierInfo,
        drafter: Drafter | None,
        ngram: NGramOptions | None,
        progress: Callable[[float], object] | None,
    ) -> None: ...
    def tokenize(
        self,
        text: str,
        *,
        add_special: bool,
        parse_special: bool,
        plain: Sequence[tuple[int, int]] = (),
    ) -> list[int]: ...
    def detokenize(self, tokens: Iterable[int], *, special: bool) -> str: ...
    def piece(self, token: int) -> bytes:
        """Return the bytes that a token adds to a text; for a special token, those of its text."""

    def vocabulary_table(self) -> VocabularyTable: ...
    def media_prompt(self, parts: Iterable[Iterable[int] | Media]) -> MediaPrompt:
        """Return a prompt of token ids and media, with the tokens that the model expects around
        media. Raises ArgumentError."""

    def check(self, prompt: Iterable[int] | MediaPrompt, options: GenerateOptions) -> None:
        """Raise ArgumentError if `start` would."""

    def start(self, prompt: Iterable[int] | MediaPrompt, options: GenerateOptions) -> Stream: ...
    def beam_search(self, prompt: Iterable[int], options: BeamOptions) -> BeamResult:
        """Search for the texts with the best scores; Ctrl-C ends it between two decodes."""

    def step(self) -> bool:
        """Advance all unfinished generations; False if there are none."""

    def save(self, slot: int = -1) -> tuple[str, NDArray[np.int32], NDArray[np.uint8]]:
        """Return the key of the sessions that can load the slot, its tokens, and their KV memory.
        slot -1: that of the generation that ended last. Raises BusyError if the slot is in use."""

    def load(
        self, key: str, tokens: Iterable[int], memory: NDArray[np.uint8], slot: int = -1
    ) -> None:
        """Load a saved state. slot -1: into the slot that a new prompt would get.
        Raises ArgumentError if the state does not fit or is damaged, and BusyError if the slot is
        in use."""

    def erase(self, slot: int) -> int:
        """Empty a slot; return the number of tokens it held. Raises BusyError if it is in use."""

    def close(self) -> None: ...
    closed: Final[bool]
    entered: Final[bool]
    n_ctx: Final[int]
    n_seq: Final[int]
    n_free: Final[int]
    n_vocab: Final[int]
    bos: Final[int]
    eos: Final[int]
    fim: Final[tuple[int, int, int, int, int]]
    chat_template: Final[str | None]
    sees: Final[bool]
    audio_rate: Final[int]
    n_encoded: Final[int]
    vocabulary: Final[int]
    def decode_seconds(self) -> list[float]: ...
    max_draft_length: Final[int]
    max_candidates: Final[int]
    max_draft_tokens: Final[int]
    drafts_by_model: Final[bool]
    drafts_by_ngram: Final[bool]
    n_threads: Final[int]
    model_description: Final[str]
    cpu_kernels: Final[str]

class Prediction:
    """A token predicted by n-grams.

    Attributes:
        token: Token id.
        order: n of the n-gram; its context has n - 1 tokens.
        frequency: Share of this token among all tokens that followed the context, in (0, 1].
        confidence: count / (total + 1), by Laplace's rule of succession: lower for a token seen
            once than for one seen often.
    """

    token: Final[int]
    order: Final[int]
    frequency: Final[float]
    confidence: Final[float]

class NGramPredictor:
    """Predicts tokens from those that followed the same few tokens before.

    It keeps frequency tables of n-grams of every order from 2 to `max_order`, with contexts hashed
    by 64-bit FNV-1a. The longest known context predicts. (The n-gram approximation of Leviathan et
    al., "Fast Inference from Transformers via Speculative Decoding", 2023, section 3.6, with
    back-off.)

    Args:
        max_order: Longest n-gram, 2 to 8.
        window: Counts of tokens older than the last `window` tokens are forgotten; 0: never.
        max_bytes: Maximum size of the tables in bytes, at least 65536; the least recently updated
            contexts are dropped first.

    Raises:
        ArgumentError: An option is out of range.
    """

    def __init__(
        self, *, max_order: int = 4, window: int = 0, max_bytes: int = 67108864
    ) -> None: ...
    def update(self, token: int) -> None:
        """Add the next token. Raises ArgumentError for a negative id."""

    def update_batch(self, tokens: Iterable[int]) -> None:
        """Add tokens in order. Raises ArgumentError for a negative id."""

    def predict(self, n: int = 4) -> list[Prediction]:
        """Return the most likely continuation, at most `n` tokens, 0 to 64.

        Each token is the most frequent one after the longest known context (the most recent one
        among equals), and then becomes part of the context. The list ends early if no context is
        known.
        """

    size_bytes: Final[int]  # Memory in use, in bytes.

    capacity: Final[int]  # Most (context, token) pairs that one order keeps.

class MatchedToken:
    """A token copied from a position after the same tokens.

    Attributes:
        token: Token id.
        length: How many tokens before it agree with those before the copied token, including the
            tokens of the copy itself.
    """

    token: Final[int]
    length: Final[int]

class Tokenizer:
    """The vocabulary of a GGUF file, without its weights."""

    def __init__(self, path: str) -> None: ...
    def tokenize(
        self,
        text: str,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        plain: Sequence[tuple[int, int]] = (),
    ) -> list[int]: ...
    def detokenize(self, tokens: Iterable[int], *, special: bool) -> str: ...
    def is_end(self, token: int) -> bool: ...
    def vocabulary_table(self) -> VocabularyTable: ...
    n_vocab: Final[int]
    fingerprint: Final[int]
    vocabulary: Final[int]
    bos: Final[int]
    eos: Final[int]
    fim: Final[tuple[int, int, int, int, int]]
    chat_template: Final[str | None]

class CorpusBuilder:
    """Collects tokenized texts and writes them as a corpus file. csrc/draft/corpus/corpus_file.h
    describes the format."""

    def __init__(self, max_tokens: int) -> None: ...
    def append(self, tokens: Iterable[int]) -> None: ...
    def end_text(self) -> None:
        """End the current text; a text without tokens does not count."""

    def write(self, path: str, n_vocab: int, vocabulary: int) -> None:
        """End the current text and write the file."""

    full: Final[bool]
    n_tokens: Final[int]
    n_texts: Final[int]

class Corpus:
    """A corpus file, mapped into memory and searched there."""

    def __init__(self, path: str) -> None: ...
    def predict(self, text: Iterable[int], n: int = 4) -> list[MatchedToken]:
        """Copy the tokens after the longest match of a text's end."""

    n_tokens: Final[int]
    n_texts: Final[int]
    n_vocab: Final[int]
    vocabulary: Final[int]
    size_bytes: Final[int]

class History:
    """The latest texts, to draft from: the texts of requests that a session with a `memory` keeps.

    Each text has an owner. A search for an owner finds only texts of this owner. Parts of a text
    that are already in the newer half are left out. It takes 14 bytes per token.

    Args:
        max_tokens: Maximum number of tokens held, 1024 to 2^28, including one after each text; new
            tokens replace the oldest.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, max_tokens: int) -> None: ...
    def append(self, tokens: Iterable[int], *, owner: int = 0) -> None:
        """Add a text. Raises ArgumentError for a negative id."""

    def predict(self, text: Iterable[int], n: int = 4, *, owner: int = 0) -> list[MatchedToken]:
        """Copy the tokens after the longest match of a text's end.

        Args:
            text: The text to continue; its last 64 tokens are compared.
            n: Maximum number of tokens to copy, 0 to 64.
            owner: The owner of the texts to search.

        Returns:
            The copy, up to the end of the text copied from. Empty if the last 4 tokens are in none
            of the texts.

        Raises:
            ArgumentError: n is out of range.
        """

    def texts(self, *, owner: int = 0) -> list[list[int]]:
        """Return an owner's texts as far as they are held, the oldest first."""

    @property
    def n_tokens(self) -> int:
        """Tokens held."""

    @property
    def size_bytes(self) -> int:
        """Memory in use, in bytes."""

class MatchFinder:
    """Finds earlier occurrences of a text's last tokens, in the text itself or in another one. The
    tokens that followed there are likely to follow again.

    Every position is indexed under a hash (FNV-1a) of the 4 tokens that end there. Among the 32
    latest positions that really agree, the longest match wins (at most 64 tokens are compared);
    among equally long ones, the most frequent next token, at its latest occurrence. Each token
    takes constant time on average for any text. Memory: at most 16 bytes per token of the longest
    text held. (Hash chains as in LZ77 compressors: RFC 1951, section 4; copying as a draft: Saxena,
    "Prompt Lookup Decoding", 2023.)

    Args:
        max_tokens: Maximum number of tokens held, 64 to 2^31; one more makes it forget the older
            half.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, *, max_tokens: int = 4194304) -> None: ...
    def append(self, token: int) -> None:
        """Add the next token. Raises ArgumentError for a negative id."""

    def append_batch(self, tokens: Iterable[int]) -> None:
        """Add tokens in order. Raises ArgumentError for a negative id."""

    def truncate(self, n: int) -> None:
        """Drop all but the first `n` tokens. Raises ArgumentError if there are fewer."""

    def predict(self, n: int = 4, text: Iterable[int] | None = None) -> list[MatchedToken]:
        """Copy the tokens after the best match of the text's end.

        Args:
            n: Maximum number of tokens to copy, 0 to 64.
            text: Another text to continue instead of the one searched; its last 64 tokens are
                compared.

        Returns:
            The copy; empty if the last 4 tokens occur nowhere else. If a text continues itself, a
            copy that reaches its end continues with its own tokens, and so repeats. A copy for
            another text stops at the end of the searched text.

        Raises:
            ArgumentError: n is out of range.
        """

    def __len__(self) -> int:
        """Number of tokens added, including forgotten ones."""

    size_bytes: Final[int]  # Memory in use, in bytes.

class Source(enum.Enum):
    """The source of a draft token."""

    match = 0
    corpus = 1
    history = 2
    ngram = 3
    grammar = 4
    model = 5
    other = 6
