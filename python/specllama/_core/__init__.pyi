"""The C++ core. What `specllama` re-exports is described here. Of everything else this file has the
types; the contract is in the C++ header of that noun. `Final` marks attributes that Python cannot
set; those of a `Stream` or a `Session` may change.

Token ids passed in as Iterable[int] are read in place if they are an int32 array, else copied. An
NDArray that comes out belongs to the caller; the core moves it out and keeps no copy.
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
    """A processor that llama.cpp can compute on. Memory in bytes. takes_layers: whether weights can
    be put there, as on GPUs."""

    name: Final[str]
    description: Final[str]
    memory_free: Final[int]
    memory_total: Final[int]
    takes_layers: Final[bool]

def list_devices(rpc: str = "") -> list[Device]:
    """Return the processors that llama.cpp can compute on: those of the RPC servers
    "host:port,host:port" (docs/guides/rpc.md), if any, then those of this machine.

    Raises:
        ArgumentError: `rpc` is not understood, or this llama.cpp was built without RPC.
        ModelError: A server cannot be reached, or is of another version.
    """

def cpu_kernels() -> str:
    """Return the kinds of kernels for weights that this processor can use, e.g. "AMX, repacked,
    plain"; unused ones are named with the reason in brackets."""

def has_amx() -> bool:
    """Whether both llama.cpp has AMX kernels and the processor has AMX."""

def try_amx(
    *, command: list[str], expected: str, libraries: str, seconds: float, key: str, folder: str
) -> tuple[bool, str]:
    """Find out whether AMX works, as sessions do, but with a given program."""

def cache_folder() -> Path | None:
    """Return the folder of what is remembered from run to run: SPECLLAMA_CACHE, or "specllama" in
    the user's folder for caches; None if there is none."""

def set_verbose(verbose: bool) -> None:
    """Let llama.cpp's informational messages through to stderr, for the whole process."""

class ModelFile:
    """What a GGUF file, with its other parts if it is split, says about its model."""

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
    """Read headers and vocabulary of a GGUF file, but no weights."""

class ProjectorFile:
    """What the file of a multimodal projector says.

    Attributes:
        sees, hears: Whether it encodes images, and sounds.
        width: How many numbers the states of its text model have.
    """

    sees: Final[bool]
    hears: Final[bool]
    width: Final[int]

def read_projector(path: str) -> ProjectorFile:
    """Read the header of a multimodal projector's GGUF file. Raises ModelError."""

class Media:
    """An image or a sound for a model that sees or hears.

    Attributes:
        id: A hash of the content.
    """

    @staticmethod
    def image(rgb: NDArray[np.uint8]) -> Media:
        """Return an image of pixels of shape (height, width, 3). Raises ArgumentError."""

    @staticmethod
    def audio(samples: NDArray[np.float32]) -> Media:
        """Return a sound of one channel, -1 to 1, at the session's `audio_rate`. Raises
        ArgumentError."""

    id: Final[str]

class MediaPrompt:
    """A prompt with images or sounds, for the session that made it.

    Attributes:
        tokens: The ids of the texts' tokens; negative ones stand for images and sounds.
        n_rows: Rows of the memory that it takes: what counts as its tokens.
    """

    tokens: Final[NDArray[np.int32]]
    n_rows: Final[int]

def check_head(head: str, target: str) -> None:
    """Raise unless a head can draft for a model."""

def automatic_draft(target: str, *, bundled_draft: str) -> str:
    """What drafts for a model if its user does not say: the path of a draft model or head (for the
    bundled target the bundled one, else one that was found next to the model), "mtp", or
    "ngram"."""

def brings_head(path: str) -> bool:
    """Return whether a model's file holds layers of multi-token prediction that can draft for
    it."""

def slow_types(path: str) -> str:
    """Return a sentence on which types of a model's weights are slow on this machine's CPU, and how
    fast the model would decode in others; "": none."""

def draft_in_type(draft: str, *, target: str, type: str) -> str:
    """Return the file that drafts for a target if `draft_type` is `type`: the given one, or a copy
    in other types, which is made now if there is none."""

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
    """A step of a generation. All chunks together give its whole text and all its tokens.

    Attributes:
        text: Whole characters; empty while a character or a possible stop string is incomplete.
        token: Token id; None for text before a stop string that began inside a token.
        from_draft: Whether the drafter proposed the token and the target agreed.
        logprobs: Log-probabilities at the token's position, if they were asked for.
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
        prefill: Decoding the prompt, up to and with the first token's logits.
        draft: The drafter's work.
        verify: The target's decodes after the prefill, and cutting the KV memory back.
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
    """What a generation did. Counts are exact.

    Attributes:
        seed: Seed of the sampling, given or fresh.
        exact: Whether the session was in the configuration in which speculation changes no token.
        same_widths: The smallest and the largest number of tokens decoded at once at which the
            session gives a token the same bits; only decodes of other widths can change a near-tie.
            None: that is not known of any two widths, or the target is remote.
        n_threads: Threads of the target's last decode; 0: it is remote, or has decoded nothing.
        prompt_tokens: Tokens of the prompt.
        reused_tokens: Prompt tokens that the KV memory already held.
        slot: The slot of the KV memory that the request has; -1 before it begins.
        generated_tokens: Tokens generated.
        rounds: Target decodes that chose tokens.
        drafted: Draft tokens that were verified.
        accepted: Draft tokens equal to the target's choice, including those that a stop condition
            then cut off.
        forced: Tokens that were not verified, since the grammar allowed no other; the token that
            ends the text may be one of them. They belong to no round.
        chosen_tokens: Tokens that rounds and grammars chose: those generated, one that ends the
            text, and those that a stop string cut off.
        draft_decoded_tokens: Tokens that the draft model decoded; 0 without one.
        acceptance_rate: accepted / drafted; 0 when nothing was drafted.
        tokens_per_round: chosen_tokens / rounds; 1 for plain decoding.
        tokens_per_second: Tokens generated per second after the prefill.
        prompt_tokens_per_second: Prompt tokens decoded per second of prefill.
        seconds: Where the time went.
        drafted_by_position: [i]: draft tokens at position i (from 0) of their drafts.
        accepted_by_position: [i]: how many of these were accepted.
        drafted_by_rank: [r]: draft tokens that were guess number r (from 0) at their position.
        accepted_by_rank: [r]: how many of these were accepted.
        by_round: (drafted, accepted) of every round; (0, 0) for a round without a draft.
        by_drafter: (drafted, accepted) by where the draft came from. "match": copied from an
            earlier place of the text after the same tokens; "corpus": likewise, from the corpus;
            "history": likewise, from earlier requests; "ngram": by frequencies; "grammar": by what
            the grammar allows; "model": a draft model; "other": any other drafter. In a beam
            search, "other" also counts what the search foresees from earlier answers of the target.
        decode_seconds: [n - 1]: the planner's estimate, at the end of the generation, of the
            seconds of a target decode of n tokens at an empty context; 0 where none was seen.
            Empty with a fixed spec_length, or without drafts.
        draft_step_seconds: The same estimate for one step of the draft model; 0 without one.
        draft_break_even: The share of its tokens that must be accepted for a draft model to pay, by
            these costs at the length of this text. More than 1: it cannot pay. 0: unknown, or
            there is no draft model.
        drafter_errors: Rounds that went without a draft because the drafter failed.
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
        """Return everything as a dict that JSON can represent."""

class DraftedToken:
    """A token that was proposed and verified.

    Attributes:
        token: Token id.
        drafter: "match", "corpus", "history", "ngram", "grammar", "model" or "other", as in
            `Stats.by_drafter`.
        length: For a match, also in the corpus or in earlier requests: how many tokens before it
            agree with the text copied from. For an n-gram: its order. For a grammar: bytes foreseen
            after it. Else 0.
        confidence: For an n-gram: its `Prediction.confidence`. For a draft model: the token's
            probability. For a match: 0 if the token copied had itself broken off a copy. For a
            grammar: below 1 if others are allowed, too, but this one came last in such a place:
            the chance that it comes again. Else 1.
        parent: Index of the draft token that it follows, in the round's draft; None: it follows the
            committed tokens.
        accepted: Whether the target agreed with it.
    """

    token: Final[int]
    drafter: Final[str]
    length: Final[int]
    confidence: Final[float]
    parent: Final[int | None]
    accepted: Final[bool]

class RoundTrace:
    """What one round did.

    Attributes:
        position: Number of tokens generated before the round.
        draft: The tokens verified, each after the one that it follows. Where there are several
            guesses at a position, the likelier comes first, together with all that follows it.
        accepted: How many of the draft tokens were accepted.
        next: The target's own token after the accepted ones; None if nothing could follow.
        forced: The tokens that followed `next` unverified, since the grammar allowed no other.
        draft_seconds: Seconds of drafting.
        decode_seconds: Seconds of the target's decode; 0 for the round that ended the prefill.
        expected_tokens: Tokens that the planner expected of the round; 0 with a fixed spec_length,
            and for a draft that the request brings.
        expected_seconds: Seconds of drafting and decoding that the planner expected; 0 where
            expected_tokens is.
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
        """Return the chunks that became certain; if there are none yet, advance the session by a
        step first."""

    def advance(self) -> bool:
        """Do as `step` does, but return no chunks; False when all have been given."""

    def take(self) -> list[Chunk]:
        """Return the chunks that became certain, without a step; if `done`, they are the last."""

    def cancel(self) -> None:
        """End the generation where it is."""

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
    """A text that a beam search found; see `specllama.Beam`."""

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
    """An option that may be left to circumstances."""

    automatic = 0
    on = 1
    off = 2

class LoraAdapter:
    """A LoRA adapter's file, and how much of it counts."""

    def __init__(self, *, path: str, scale: float) -> None: ...
    path: Final[str]
    scale: Final[float]

class Option:
    """A line of the tables of options; see csrc/include/specllama/option.h.

    Attributes:
        kind: "flag", "integer", "number", "text", "texts", "numbers", "choice", "switch", or "" for
            other types.
        optional: Whether None leaves it out.
        by_default: The default in words, with what some values mean.
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
    """Options of the n-gram drafter, as `ngram_options` lists them."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class SessionOptions:
    """Options of a session, as `session_options` lists them; see `specllama.SpecSession`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class AcceptanceRule(enum.Enum):
    """How it is decided whether a draft token is accepted."""

    coupled = 0
    rejection = 1

class SpecType(enum.Enum):
    """Which drafters may draft."""

    auto = 0
    none = 1
    model = 2
    ngram = 3

class GrammarSyntax(enum.Enum):
    """How a grammar is written."""

    gbnf = 0
    lark = 1
    regex = 2
    json_schema = 3

class SamplingOptions:
    """Options of sampling, as `sampling_options` lists them; see `specllama.GenerateOptions`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class EarlyStopping(enum.Enum):
    """When a beam search ends."""

    no = 0
    yes = 1
    never = 2

class BeamOptions:
    """Options of a beam search, as `beam_options` lists them; see `specllama.BeamOptions`."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class RequestDraft:
    """A draft that a request brings. branches: alternatives to a part of the tokens, as pairs:
    after how many of the tokens, and the token ids, at least one, that may follow there."""

    def __init__(self, *, tokens: Iterable[int], branches: list[tuple[int, list[int]]]) -> None: ...
    tokens: Final[list[int]]
    branches: Final[list[tuple[int, list[int]]]]

class GenerateOptions:
    """Options of a generation, as `generate_options` lists them; see `specllama.GenerateOptions`.
    replayed: tokens to generate, whatever the model chooses; [] (the default): the model decides.
    generated: tokens that an earlier request generated before it broke off. draft: what to verify,
    in one round; None: the session drafts. `sampling`: those of sampling together."""

    def __init__(self, **options: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Sampler:
    """The choice rule alone: the argmax over the kept tokens of logit / T + Gumbel noise."""

    def __init__(self, options: SamplingOptions, n_vocab: int, texts: list[bytes] = []) -> None: ...
    def choose(self, logits: NDArray[np.float32], context: Iterable[int]) -> int:
        """Return the token that follows `context`, whose length is the position of the choice."""

    def choose_many(self, logits: NDArray[np.float32], first: int, count: int) -> NDArray[np.int32]:
        """Return what is chosen from the same logits at positions first, first + 1, ..."""

    def speculate_many(
        self,
        logits: NDArray[np.float32],
        draft_logits: NDArray[np.float32],
        first: int,
        count: int,
        point_mass: bool = False,
        n_guesses: int = 1,
    ) -> NDArray[np.int32]:
        """Return what is drafted from `draft_logits`, and what is then generated from `logits`, at
        positions first, first + 1, ..."""

    seed: Final[int]

def gumbel(bits: int) -> float:
    """Return the standard Gumbel number for 64 random bits; always finite."""

def probability(logits: NDArray[np.float32], token: int) -> float:
    """Return the softmax probability of a token, to about six digits."""

def spec_cli_flags() -> dict[str, bool]:
    """Return the options of spec-cli, with whether a value follows."""

def check_spec_cli(arguments: Sequence[str]) -> None:
    """Raise ArgumentError if spec-cli refuses a command line, as far as that is known before a
    model is opened."""

def spec_cli(
    arguments: Sequence[str | bytes], chat: Callable[[Session, str | None, str], list[int]]
) -> int:
    """Run spec-cli in this process, and return its exit code. From then on Ctrl-C is its own.

    Args:
        arguments: The path of its executable, and its command line.
        chat: Returns the tokens of a prompt by which a session's model, which has a chat template,
            answers a message, after a system message if there is one. The session may not be kept.
    """

def set_llguidance_path(path: str) -> None:
    """Set the file of llguidance's extension module, which is loaded when the first grammar is
    read. "": it is not installed, so grammars raise ArgumentError."""

def choice_seed(seed: int, choice: int) -> int:
    """Return the seed of choice number `choice` of a request; choice 0 has `seed` itself."""

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
    """What a target elsewhere is: as the properties of a `Session`, and the seconds of some round
    trips to it."""

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
    """What a target elsewhere makes of a draft."""

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
    """A model with its KV memory and a drafter; or a drafter for a model elsewhere, which a
    `specllama.remote.verifier.Verifier` asks."""

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
        """Return the bytes that a token adds to a text, special tokens' texts included."""

    def vocabulary_table(self) -> VocabularyTable: ...
    def media_prompt(self, parts: Iterable[Iterable[int] | Media]) -> MediaPrompt:
        """Return a prompt of texts' tokens and media, with the tokens that the model expects around
        these. Raises ArgumentError."""

    def check(self, prompt: Iterable[int] | MediaPrompt, options: GenerateOptions) -> None:
        """Raise ArgumentError for whatever `start` would refuse."""

    def start(self, prompt: Iterable[int] | MediaPrompt, options: GenerateOptions) -> Stream: ...
    def beam_search(self, prompt: Iterable[int], options: BeamOptions) -> BeamResult:
        """Search for the texts that score best; Ctrl-C ends it between two decodes."""

    def step(self) -> bool:
        """Advance all unfinished generations; False when there are none."""

    def save(self, slot: int = -1) -> tuple[str, NDArray[np.int32], NDArray[np.uint8]]:
        """Return the key of the sessions that it fits, its tokens, and their KV memory. slot -1:
        what the generation that ended last has left. Raises BusyError if the slot is in use."""

    def load(
        self, key: str, tokens: Iterable[int], memory: NDArray[np.uint8], slot: int = -1
    ) -> None:
        """Put a saved state back. slot -1: into the one that has been free the longest. Raises
        ArgumentError if it does not fit or is damaged, and BusyError if the slot is in use."""

    def erase(self, slot: int) -> int:
        """Empty a slot; return how many tokens it held. Raises BusyError if it is in use."""

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
    """A token that n-grams predict.

    Attributes:
        token: Token id.
        order: n of the n-gram; its context was n - 1 tokens.
        frequency: Share of this token among all that followed the context, in (0, 1].
        confidence: count / (total + 1), by Laplace's rule of succession, so that a token seen once
            counts for less than one seen often.
    """

    token: Final[int]
    order: Final[int]
    frequency: Final[float]
    confidence: Final[float]

class NGramPredictor:
    """Predicts tokens from what followed the same few tokens before.

    Keeps frequency tables of n-grams of every order from 2 to `max_order`, with contexts hashed by
    64-bit FNV-1a; the longest known context predicts. (The n-gram approximation of Leviathan et
    al., "Fast Inference from Transformers via Speculative Decoding", 2023, section 3.6, with
    back-off.)

    Args:
        max_order: Longest n-gram, 2 to 8.
        window: Counts are forgotten when their token leaves the last `window` tokens; 0: never.
        max_bytes: Bound on the tables' memory, at least 65536; the contexts updated longest ago are
            dropped first.

    Raises:
        ArgumentError: An option is out of range.
    """

    def __init__(
        self, *, max_order: int = 4, window: int = 0, max_bytes: int = 67108864
    ) -> None: ...
    def update(self, token: int) -> None:
        """Take in the next token. Raises ArgumentError for a negative id."""

    def update_batch(self, tokens: Iterable[int]) -> None:
        """Take in tokens in order. Raises ArgumentError for a negative id."""

    def predict(self, n: int = 4) -> list[Prediction]:
        """Return the most likely continuation, at most `n` tokens, 0 to 64.

        Each token is the most frequent one after the longest known context (the most recent among
        equals), and then becomes part of the context. The list ends early if no context is known.
        """

    size_bytes: Final[int]  # Memory in use, in bytes.

    capacity: Final[int]  # Most (context, token) pairs that one order keeps.

class MatchedToken:
    """A token copied from a place where the same tokens stood before it.

    Attributes:
        token: Token id.
        length: How many tokens before it agree with those before the place copied from, including
            the tokens of the copy itself.
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
    """Gathers tokenized texts and writes them as a corpus file, whose format is described in
    csrc/draft/corpus/corpus_file.h."""

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
        """Copy what followed the longest match of a text's end."""

    n_tokens: Final[int]
    n_texts: Final[int]
    n_vocab: Final[int]
    vocabulary: Final[int]
    size_bytes: Final[int]

class History:
    """The latest texts, to be drafted from: what a session with a `memory` keeps of its requests.

    Each text has an owner, and what is found for an owner is only ever in texts of the same one.
    Parts of a text that the newer half has already are left out. 14 bytes per token.

    Args:
        max_tokens: Most tokens held, 1024 to 2^28, one after each text included; new ones replace
            the oldest.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, max_tokens: int) -> None: ...
    def append(self, tokens: Iterable[int], *, owner: int = 0) -> None:
        """Add a text. Raises ArgumentError for a negative id."""

    def predict(self, text: Iterable[int], n: int = 4, *, owner: int = 0) -> list[MatchedToken]:
        """Copy what followed the longest match of a text's end.

        Args:
            text: The text to continue; its last 64 tokens decide.
            n: Most tokens to copy, 0 to 64.
            owner: Whose texts are searched.

        Returns:
            The copy; it ends where its text does. Empty if the last 4 tokens are in none of them.

        Raises:
            ArgumentError: n is out of range.
        """

    def texts(self, *, owner: int = 0) -> list[list[int]]:
        """Return what is held of an owner's texts, the oldest first."""

    @property
    def n_tokens(self) -> int:
        """Tokens held."""

    @property
    def size_bytes(self) -> int:
        """Memory in use, in bytes."""

class MatchFinder:
    """Finds where the last tokens of a text stand earlier in it, or in another text; what followed
    there is likely to follow again.

    Every position is entered under a hash (FNV-1a) of the 4 tokens that end there. Of the 32 latest
    positions that really agree, the longest match wins (at most 64 tokens count); among equally
    long ones, the most frequent next token, at its latest occurrence. Each token takes constant
    time on average, whatever the text. Memory: at most 16 bytes per token of the longest text held.
    (Hash chains as in LZ77 compressors: RFC 1951, section 4; copying as a draft: Saxena, "Prompt
    Lookup Decoding", 2023.)

    Args:
        max_tokens: Most tokens held, 64 to 2^31; when another one comes, the older half is
            forgotten.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, *, max_tokens: int = 4194304) -> None: ...
    def append(self, token: int) -> None:
        """Take in the next token. Raises ArgumentError for a negative id."""

    def append_batch(self, tokens: Iterable[int]) -> None:
        """Take in tokens in order. Raises ArgumentError for a negative id."""

    def truncate(self, n: int) -> None:
        """Drop all but the first `n` tokens. Raises ArgumentError if there are fewer."""

    def predict(self, n: int = 4, text: Iterable[int] | None = None) -> list[MatchedToken]:
        """Copy what followed the best match of the text's end.

        Args:
            n: Most tokens to copy, 0 to 64.
            text: Another text to continue instead of the one searched; its last 64 tokens decide.

        Returns:
            The copy; empty if the last 4 tokens stand nowhere else. When a text continues itself, a
            copy that reaches its end goes on with its own tokens, and so repeats; a copy for
            another text stops at the end of the text searched.

        Raises:
            ArgumentError: n is out of range.
        """

    def __len__(self) -> int:
        """Tokens taken in, including those forgotten since."""

    size_bytes: Final[int]  # Memory in use, in bytes.

class Source(enum.Enum):
    """Where a draft token comes from."""

    match = 0
    corpus = 1
    history = 2
    ngram = 3
    grammar = 4
    model = 5
    other = 6
