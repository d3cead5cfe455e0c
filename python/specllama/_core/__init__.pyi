"""The C++ core. Its names are re-exported by `specllama`; use those.

Where token ids go in, as Iterable[int], an int32 array is read where it lies and anything else is
copied. What comes out as an NDArray is the caller's own, and not a copy of what the core keeps.
"""

import enum
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from specllama.drafter import Drafter

version: str
llama_cpp_version: str

class Device:
    """A processor that llama.cpp can compute on. Memory in bytes."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def memory_free(self) -> int: ...
    @property
    def memory_total(self) -> int: ...

def list_devices(rpc: str = "") -> list[Device]:
    """Return the processors that llama.cpp can compute on: this machine's, behind those of the RPC
    servers "host:port,host:port" (docs/rpc.md), if there are any.

    Raises:
        ArgumentError: `rpc` is not understood, or this llama.cpp was built without RPC.
        ModelError: A server cannot be reached, or is of another version.
    """

def cpu_kernels() -> str:
    """Return which kernels for weights there are for this processor, e.g. "AMX, repacked, plain";
    those that are left out with the reason in brackets."""

def has_amx() -> bool:
    """Whether llama.cpp has AMX kernels, and the processor AMX."""

def try_amx(
    *, command: list[str], expected: str, libraries: str, seconds: float, key: str, folder: str
) -> tuple[bool, str]:
    """Try whether AMX works, as sessions do, by a program of one's own.

    Args:
        command: The program that tries it, and its arguments; SPECLLAMA_AMX in its environment is
            "on", or "off".
        expected: What it prints first if all is well.
        libraries: Folder of those that it takes before what it would find by itself; "": none.
        seconds: After which it counts as dead.
        key: What was tried; "": nothing is remembered.
        folder: That remembers.

    Returns:
        Whether it works, and a notice for the user, or "".

    Raises:
        ModelError: The program is killed with AMX and without it.
    """

def cache_folder() -> Path | None:
    """Return where things are remembered from run to run: SPECLLAMA_CACHE, or "specllama" in the
    user's folder for caches; None if there is none. It need not exist."""

def set_verbose(verbose: bool) -> None:
    """Let llama.cpp's informational messages through to stderr, for the whole process."""

class ModelFile:
    """What a GGUF file, with its other parts if it is split, says about its model.

    Attributes:
        architecture: E.g. "llama".
        weight_type: E.g. "Q4_K - Medium".
        n_parameters: Number of weights.
        weight_bytes: Their size in bytes.
        n_tokens: Size of the vocabulary.
        vocabulary: Equal for files with the same vocabulary.
        can_draft: Its memory can be cut back, which drafting needs.
        reads_width: Numbers of the states that a head (EAGLE-3) reads of its target; 0: no head.
        tells_width: Numbers of the states that such a head may read of this model; 0: llama.cpp
            does not tell them.
        brings_head: It brings layers of multi-token prediction along that can draft for it.
    """

    @property
    def architecture(self) -> str: ...
    @property
    def weight_type(self) -> str: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def can_draft(self) -> bool: ...
    @property
    def reads_width(self) -> int: ...
    @property
    def tells_width(self) -> int: ...
    @property
    def brings_head(self) -> bool: ...

def read_model_file(path: str) -> ModelFile:
    """Read headers and vocabulary of a GGUF file, but no weights. Raises ModelError."""

def brings_head(path: str) -> bool:
    """Return whether a model's file brings layers of multi-token prediction along that can draft
    for it. Reads the header only. Raises ModelError."""

class TokenLogprobs:
    """Natural logarithms of probabilities at one position.

    Attributes:
        token: The token that came.
        logprob: Its own.
        top: The most likely tokens and theirs, the likeliest first.
    """

    def __init__(self, *, token: int, logprob: float, top: list[tuple[int, float]]) -> None: ...
    @property
    def token(self) -> int: ...
    @property
    def logprob(self) -> float: ...
    @property
    def top(self) -> list[tuple[int, float]]: ...

class Chunk:
    """A step of a generation. The texts of all chunks joined are the text, their tokens the tokens.

    Attributes:
        text: Whole characters; empty while a character or a possible stop string is incomplete.
        token: Token id; None for text before a stop string that began inside a token.
        from_draft: The drafter proposed the token and the target agreed.
        logprobs: Of the token, if they were asked for.
        finish_reason: Why the generation ended; on its last chunk only.
    """

    def __init__(
        self,
        *,
        text: str,
        token: int | None,
        from_draft: bool,
        logprobs: TokenLogprobs | None,
        finish_reason: Literal["stop", "length"] | None,
    ) -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def token(self) -> int | None: ...
    @property
    def from_draft(self) -> bool: ...
    @property
    def logprobs(self) -> TokenLogprobs | None: ...
    @property
    def finish_reason(self) -> Literal["stop", "length"] | None: ...

class Seconds:
    """Time in the parts of a generation, in seconds of a monotonic clock, inside the library.

    Attributes:
        prefill: Decoding the prompt, up to and with the first token's logits.
        draft: The drafter.
        verify: The target's decodes after the prefill, and cutting the KV memory back.
        choose: Choosing tokens from logits.
        text: Turning tokens into text and looking for stop strings.
        total: Everything, from start to finish.
    """

    @property
    def prefill(self) -> float: ...
    @property
    def draft(self) -> float: ...
    @property
    def verify(self) -> float: ...
    @property
    def choose(self) -> float: ...
    @property
    def text(self) -> float: ...
    @property
    def total(self) -> float: ...

class Stats:
    """What a generation did. Counts are exact.

    Attributes:
        seed: Seed of the sampling, given or fresh.
        exact: The session was in the configuration in which speculation changes no token at all.
        prompt_tokens: Tokens of the prompt.
        reused_tokens: Of those, tokens whose KV memory was still there.
        generated_tokens: Tokens generated.
        rounds: Target decodes that chose tokens.
        drafted: Tokens proposed.
        accepted: Of those, tokens equal to the target's choice, also those that a stop condition
            then cut off.
        certain: Tokens that came unverified, since the grammar left no other, the one that ends the
            text among them; they belong to no round.
        padded: Rows that target decodes had beside those that were wanted, since so they took less
            time.
        draft_decoded_tokens: Tokens that the draft model decoded; 0 without one.
        acceptance_rate: accepted / drafted; 0 when nothing was drafted.
        tokens_per_round: generated_tokens / rounds.
        tokens_per_second: Tokens generated per second after the prefill.
        prompt_tokens_per_second: Prompt tokens decoded per second of prefill.
        seconds: Where the time went.
        drafted_by_position: [i]: how often a draft token at position i (from 0) was proposed.
        accepted_by_position: [i]: how often one was accepted.
        drafted_by_rank: [r]: how often the guess of rank r (from 0) at its position was proposed.
        accepted_by_rank: [r]: how often it was accepted.
        by_round: (drafted, accepted) of every round; (0, 0) for a round without a draft.
        by_drafter: (drafted, accepted) of "match", "corpus", "ngram", "grammar", "model" and
            "other" drafts: copied from where the same tokens stood before, the same from the
            corpus, by frequencies, by what the grammar leaves, by a draft model, by any other. Of
            beams, "other" is also what the search foresees by what the target has said.
        decode_seconds: What the planner believes at the end of the generation: [n - 1] is the time
            of a target decode of n tokens, in seconds, at an empty context; 0 where none was seen.
            Empty with a fixed spec_length, or without drafts.
        draft_step_seconds: The same of one step of the draft model; 0 without one.
        drafter_errors: Rounds that went plain because the drafter failed.
        last_drafter_error: What the last of them said; "" if there was none.
    """

    def __init__(
        self,
        *,
        seed: int,
        exact: bool,
        prompt_tokens: int,
        reused_tokens: int,
        generated_tokens: int,
        prefill_generated_tokens: int,
        by_round: list[tuple[int, int]],
        by_position: list[tuple[int, int]],
        by_rank: list[tuple[int, int]],
        by_drafter: dict[str, tuple[int, int]],
        decode_seconds: list[float],
        draft_step_seconds: float,
        drafter_errors: int,
        last_drafter_error: str,
        seconds: dict[str, float],
    ) -> None: ...
    @property
    def seed(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def reused_tokens(self) -> int: ...
    @property
    def generated_tokens(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def certain(self) -> int: ...
    @property
    def padded(self) -> int: ...
    @property
    def draft_decoded_tokens(self) -> int: ...
    @property
    def acceptance_rate(self) -> float: ...
    @property
    def tokens_per_round(self) -> float: ...
    @property
    def tokens_per_second(self) -> float: ...
    @property
    def prompt_tokens_per_second(self) -> float: ...
    @property
    def seconds(self) -> Seconds: ...
    @property
    def drafted_by_position(self) -> list[int]: ...
    @property
    def accepted_by_position(self) -> list[int]: ...
    @property
    def drafted_by_rank(self) -> list[int]: ...
    @property
    def accepted_by_rank(self) -> list[int]: ...
    @property
    def by_round(self) -> list[tuple[int, int]]: ...
    @property
    def by_drafter(self) -> dict[str, tuple[int, int]]: ...
    @property
    def decode_seconds(self) -> list[float]: ...
    @property
    def draft_step_seconds(self) -> float: ...
    @property
    def drafter_errors(self) -> int: ...
    @property
    def last_drafter_error(self) -> str: ...
    def to_dict(self) -> dict[str, object]:
        """Return everything as a dict that JSON can hold."""

class DraftedToken:
    """A token that was proposed and verified.

    Attributes:
        token: Token id.
        drafter: "match", "corpus", "ngram", "grammar", "model" or "other", as in
            `Stats.by_drafter`.
        length: Of a match, also one in the corpus: how many tokens before it agree with the text
            copied from. Of an n-gram: its order. Of a grammar: bytes foreseen behind it. Else 0.
        confidence: Of an n-gram: its `Prediction.confidence`. Of a draft model: its probability.
            Of a match: 0 where the token copied had itself broken off a copy. Of a grammar: below 1
            where it is only what came last in such a place. Else 1.
        parent: Which of the round's draft tokens it comes after; None: what was there before.
        accepted: Whether the target agreed with it.
    """

    @property
    def token(self) -> int: ...
    @property
    def drafter(self) -> str: ...
    @property
    def length(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    @property
    def parent(self) -> int | None: ...
    @property
    def accepted(self) -> bool: ...

class RoundTrace:
    """What one round did.

    Attributes:
        position: Generated tokens before it.
        draft: The tokens verified, each behind the one it comes after; where there are several
            guesses at a position, the likelier with all that follows it before the others.
        accepted: How many of them were accepted.
        next: The target's own token behind these; None if nothing could come.
        certain: The tokens that came behind it unverified, since the grammar left no other.
        draft_seconds: Time of drafting.
        decode_seconds: Time of the target's decode; 0 for the round that ended the prefill.
        expected_tokens: What the planner expected of the round, in tokens; 0 with a fixed
            spec_length.
        expected_seconds: The same in seconds of drafting and decoding.
    """

    @property
    def position(self) -> int: ...
    @property
    def draft(self) -> list[DraftedToken]: ...
    @property
    def accepted(self) -> int: ...
    @property
    def next(self) -> int | None: ...
    @property
    def certain(self) -> list[int]: ...
    @property
    def draft_seconds(self) -> float: ...
    @property
    def decode_seconds(self) -> float: ...
    @property
    def expected_tokens(self) -> float: ...
    @property
    def expected_seconds(self) -> float: ...

class Stream:
    """A generation in progress."""

    def step(self) -> list[Chunk] | None:
        """Return what became certain, after a step of the session if nothing has; None when all has
        been given."""

    def advance(self) -> bool:
        """Do as `step` does, but give nothing back; False when all has been given."""

    def take(self) -> list[Chunk]:
        """Return what became certain, without a step; nothing more will when it is `done`."""

    def offer(
        self,
        n_before: int,
        tokens: Iterable[int],
        confidence: list[float],
        branches: list[tuple[int, Iterable[int]]],
    ) -> None:
        """Leave a draft: what may follow the first `n_before` tokens, prompt included. A paced
        generation goes on by a round that verifies it. Branches leave it after so many of its
        tokens; confidence goes on with theirs. From any thread."""

    def waits(self) -> bool:
        """Whether a paced generation waits for a draft. From the thread that steps."""

    def cancel(self) -> None:
        """End the generation where it is."""

    @property
    def done(self) -> bool: ...
    @property
    def finish_reason(self) -> Literal["stop", "length"] | None: ...
    @property
    def stop_string(self) -> str: ...
    @property
    def in_prompt(self) -> bool: ...
    @property
    def n_prefilled(self) -> int: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def text(self) -> str: ...
    @property
    def logprobs(self) -> list[TokenLogprobs]: ...
    @property
    def stats(self) -> Stats: ...
    @property
    def trace(self) -> list[RoundTrace]: ...

class Beam:
    """A text that a beam search found; see `specllama.Beam`."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def logprob(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def finish_reason(self) -> Literal["stop", "length"]: ...

class BeamResult:
    """What a beam search came to: its beams, the best first, and what it took."""

    @property
    def beams(self) -> list[Beam]: ...
    @property
    def stats(self) -> Stats: ...

class Switch(enum.Enum):
    """What may be left to circumstances."""

    automatic = 0
    on = 1
    off = 2

class ModelOptions:
    """Which model, and where it lies; n_gpu_layers None: all, or none where exactness is
    demanded."""

    def __init__(self, *, path: str, n_gpu_layers: int | None, device: str, rpc: str) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def n_gpu_layers(self) -> int | None: ...
    @property
    def device(self) -> str: ...
    @property
    def rpc(self) -> str: ...

class ContextOptions:
    """The memory of a model and how it decodes; n_ctx, n_threads 0: by default."""

    def __init__(
        self,
        *,
        n_ctx: int,
        n_seq: int,
        n_batch: int,
        n_threads: int,
        flash_attn: Switch,
        kv_type: str | None,
    ) -> None: ...
    @property
    def n_ctx(self) -> int: ...
    @property
    def n_seq(self) -> int: ...
    @property
    def n_batch(self) -> int: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def flash_attn(self) -> Switch: ...
    @property
    def kv_type(self) -> str | None: ...

class NGramOptions:
    """Options of the n-gram predictor."""

    def __init__(self, *, max_order: int, window: int, max_bytes: int, draw: bool) -> None: ...
    @property
    def max_order(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def draw(self) -> bool: ...

class DraftModelOptions:
    """A second GGUF that drafts; or, with mtp, layers of the target's own. Of its context, n_ctx,
    n_seq and n_batch become the target's."""

    def __init__(
        self,
        *,
        model: ModelOptions,
        mtp: bool,
        context: ContextOptions,
        p_min: float,
        temperature: float | None,
        top_k: int | None,
        top_p: float | None,
        min_p: float | None,
    ) -> None: ...
    @property
    def model(self) -> ModelOptions: ...
    @property
    def mtp(self) -> bool: ...
    @property
    def context(self) -> ContextOptions: ...
    @property
    def p_min(self) -> float: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def top_k(self) -> int | None: ...
    @property
    def top_p(self) -> float | None: ...
    @property
    def min_p(self) -> float | None: ...

class SessionOptions:
    """Options of a session; see `specllama.SpecSession`. spec_length and spec_tree None: "auto";
    corpus "": none."""

    def __init__(
        self,
        *,
        model: ModelOptions,
        context: ContextOptions,
        spec_length: int | None,
        spec_tree: int | None,
        draft_model: DraftModelOptions | None,
        corpus: str,
        offers: bool,
        exact: Switch,
    ) -> None: ...
    @property
    def model(self) -> ModelOptions: ...
    @property
    def context(self) -> ContextOptions: ...
    @property
    def spec_length(self) -> int | None: ...
    @property
    def spec_tree(self) -> int | None: ...
    @property
    def draft_model(self) -> DraftModelOptions | None: ...
    @property
    def corpus(self) -> str: ...
    @property
    def offers(self) -> bool: ...
    @property
    def exact(self) -> Switch: ...

class AcceptanceRule(enum.Enum):
    """What becomes of a draft token."""

    coupled = 0
    rejection = 1

class SamplingOptions:
    """Options of sampling; see `specllama.GenerateOptions`."""

    def __init__(
        self,
        *,
        temperature: float,
        top_k: int,
        top_p: float,
        min_p: float,
        repeat_penalty: float,
        frequency_penalty: float,
        presence_penalty: float,
        penalty_last_n: int,
        logit_bias: list[tuple[int, float]],
        logprobs: int,
        processed_logprobs: bool,
        seed: int | None,
        acceptance: AcceptanceRule,
        lenience: float,
        grammar: str,
        grammar_triggers: list[str],
    ) -> None: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def top_p(self) -> float: ...
    @property
    def min_p(self) -> float: ...
    @property
    def repeat_penalty(self) -> float: ...
    @property
    def frequency_penalty(self) -> float: ...
    @property
    def presence_penalty(self) -> float: ...
    @property
    def penalty_last_n(self) -> int: ...
    @property
    def logit_bias(self) -> list[tuple[int, float]]: ...
    @property
    def logprobs(self) -> int: ...
    @property
    def processed_logprobs(self) -> bool: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def acceptance(self) -> AcceptanceRule: ...
    @property
    def lenience(self) -> float: ...
    @property
    def grammar(self) -> str: ...
    @property
    def grammar_triggers(self) -> list[str]: ...

class EarlyStopping(enum.Enum):
    """When a beam search ends."""

    no = 0
    yes = 1
    never = 2

class BeamOptions:
    """Options of a beam search; see `specllama.BeamOptions`. max_tokens as in GenerateOptions."""

    def __init__(
        self,
        *,
        n_beams: int,
        length_penalty: float,
        early_stopping: EarlyStopping,
        max_tokens: int | None,
        stop: list[str],
        reference: Iterable[int],
    ) -> None: ...
    @property
    def n_beams(self) -> int: ...
    @property
    def length_penalty(self) -> float: ...
    @property
    def early_stopping(self) -> EarlyStopping: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def stop(self) -> list[str]: ...
    @property
    def reference(self) -> list[int]: ...

class GenerateOptions:
    """Options of a generation; see `specllama.GenerateOptions`. replayed: tokens to generate,
    whatever the model chooses; []: as it chooses. generated: what an earlier request has generated
    before it broke off. paced: every round but the first waits for `Stream.offer`."""

    def __init__(
        self,
        *,
        max_tokens: int | None,
        stop: list[str],
        sampling: SamplingOptions,
        reference: Iterable[int],
        replayed: Iterable[int],
        generated: Iterable[int],
        paced: bool,
        trace: bool,
    ) -> None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def stop(self) -> list[str]: ...
    @property
    def sampling(self) -> SamplingOptions: ...
    @property
    def reference(self) -> list[int]: ...
    @property
    def replayed(self) -> list[int]: ...
    @property
    def generated(self) -> list[int]: ...
    @property
    def paced(self) -> bool: ...
    @property
    def trace(self) -> bool: ...

class Sampler:
    """The choice rule alone: argmax over the kept tokens of logit / T + Gumbel noise, the noise a
    pure function of seed, position and token.

    Args:
        options: What to cut and to penalise.
        n_vocab: Length of the rows of logits.

    Raises:
        ArgumentError: An option is out of range.
    """

    def __init__(self, options: SamplingOptions, n_vocab: int) -> None: ...
    def choose(self, logits: NDArray[np.float32], context: Iterable[int]) -> int:
        """Return the token that follows `context`; its length is the position.

        Args:
            logits: Shape [n_vocab], float32.
            context: All tokens before, for penalties.

        Returns:
            A token id; -1 when the logits hold a NaN or nothing is left of them.
        """

    def choose_many(self, logits: NDArray[np.float32], first: int, count: int) -> NDArray[np.int32]:
        """Return what is chosen from the same logits at positions first, first + 1, ...

        The context is all zeros. Shape [count].
        """

    def speculate_many(
        self,
        logits: NDArray[np.float32],
        draft_logits: NDArray[np.float32],
        first: int,
        count: int,
        point_mass: bool = False,
        n_guesses: int = 1,
    ) -> NDArray[np.int32]:
        """Return what is drafted from `draft_logits`, and what then comes from `logits`, at
        positions first, first + 1, ...

        The context is all zeros; `point_mass`: without telling what the draft was drawn from.
        Shape [count, n_guesses + 1]: the guesses, the likeliest first and -1 where there are no
        more, and what came. n_guesses: 1 to 8.
        """

    @property
    def seed(self) -> int: ...

def gumbel(bits: int) -> float:
    """Return the standard Gumbel number that 64 random bits stand for; always finite."""

def probability(logits: NDArray[np.float32], token: int) -> float:
    """Return the probability that softmax gives to a token, to some six digits.

    Args:
        logits: Shape [n_vocab], float32, without NaN.
        token: A token id with a finite logit. ArgumentError where it is out of range.
    """

def choice_seed(seed: int, choice: int) -> int:
    """Return the seed of one of several choices for a request; that of choice 0 is `seed`."""

class Session:
    """A model with its KV memory and a drafter."""

    def __init__(
        self,
        options: SessionOptions,
        *,
        drafter: Drafter | None,
        ngram: NGramOptions | None,
        progress: Callable[[float], object] | None,
    ) -> None: ...
    def tokenize(
        self, text: str, *, add_special: bool, parse_special: bool
    ) -> NDArray[np.int32]: ...
    def detokenize(self, tokens: Iterable[int], *, special: bool) -> str: ...
    def check(self, prompt: Iterable[int], options: GenerateOptions) -> None:
        """Raise ArgumentError for what `start` would refuse, but for a grammar."""

    def start(self, prompt: Iterable[int], options: GenerateOptions) -> Stream: ...
    def search(self, prompt: Iterable[int], options: BeamOptions) -> BeamResult:
        """Search for the texts that score best; Ctrl-C ends it between two decodes."""

    def step(self) -> bool:
        """Advance all unfinished generations; False when there are none."""

    def save(self) -> tuple[str, NDArray[np.int32], NDArray[np.uint8]]:
        """Return which sessions the state fits, its tokens, and what they left in the memory."""

    def load(self, key: str, tokens: Iterable[int], memory: NDArray[np.uint8]) -> None:
        """Put it back. Raises ArgumentError when it does not fit or is damaged."""

    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def entered(self) -> bool:
        """The calling thread is inside a working call already, in a drafter that is asked."""

    @property
    def n_ctx(self) -> int: ...
    @property
    def n_seq(self) -> int: ...
    @property
    def n_free(self) -> int:
        """How many generations could begin now, beside those that are unfinished."""

    @property
    def n_vocab(self) -> int: ...
    @property
    def bos(self) -> int: ...
    @property
    def eos(self) -> int: ...
    @property
    def fim(self) -> tuple[int, int, int, int, int]:
        """Tokens for filling in: prefix, suffix, middle, repository, file; -1 for none."""
    @property
    def chat_template(self) -> str | None: ...
    @property
    def vocabulary(self) -> int: ...
    def decode_seconds(self) -> list[float]: ...
    @property
    def longest_draft(self) -> int:
        """Most tokens of a draft that a round verifies; 0: none are."""

    @property
    def most_guesses(self) -> int:
        """Most guesses at a position in one; 1: drafts are chains."""

    @property
    def most_nodes(self) -> int:
        """Most tokens of one, those of all branches included."""

    @property
    def drafts(self) -> bool:
        """Whether anybody drafts here, beside those outside."""

    @property
    def n_threads(self) -> int: ...
    @property
    def model_description(self) -> str: ...
    @property
    def cpu_kernels(self) -> str: ...

class Prediction:
    """A token that n-grams predict.

    Attributes:
        token: Token id.
        order: n of the n-gram: its context was n - 1 tokens.
        frequency: Share of this token among all that followed the context, in (0, 1].
        confidence: The same by Laplace's rule of succession: count / (total + 1), so that what was
            seen once counts for less than what was seen often.
    """

    @property
    def token(self) -> int: ...
    @property
    def order(self) -> int: ...
    @property
    def frequency(self) -> float: ...
    @property
    def confidence(self) -> float: ...

class NGramPredictor:
    """Predicts tokens from what followed the same few tokens before.

    Frequency tables of n-grams of every order from 2 to `max_order`, contexts hashed with 64-bit
    FNV-1a; the longest known context predicts. (The n-gram approximation of Leviathan et al., "Fast
    Inference from Transformers via Speculative Decoding", 2023, section 3.6, with back-off.)

    Args:
        max_order: Longest n-gram, 2 to 8.
        window: Counts are forgotten when their token leaves the last `window` tokens; 0: never.
        max_bytes: Bound on the tables' memory, at least 65536; the contexts updated longest ago go
            first.

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

        Each is the most frequent token after the longest known context, the most recent among
        equals, and then part of the context; it ends early where no context is known.
        """

    def clear(self) -> None:
        """Forget everything."""

    @property
    def size_bytes(self) -> int:
        """Memory in use, in bytes."""

    @property
    def capacity(self) -> int:
        """Most (context, token) pairs that one order keeps."""

class MatchedToken:
    """A token copied from where the same tokens stood before it.

    Attributes:
        token: Token id.
        length: How many tokens before it agree with those before the place copied from, the copy's
            own included.
    """

    @property
    def token(self) -> int: ...
    @property
    def length(self) -> int: ...

class Tokenizer:
    """The vocabulary of a GGUF file, without its weights.

    Attributes:
        n_vocab: Number of tokens it knows.
        fingerprint: What a corpus of its tokens is marked with: the same for vocabularies with the
            same texts.
        vocabulary, bos, eos, fim, chat_template: As of a `Session`.

    Raises:
        ModelError: The file is missing, damaged, or no model that generates text.
    """

    def __init__(self, path: str) -> None: ...
    def tokenize(
        self, text: str, *, add_special: bool = False, parse_special: bool = True
    ) -> NDArray[np.int32]:
        """Return the token ids of a text.

        Args:
            text: Any text.
            add_special: Put around it what the model wants there.
            parse_special: Read the texts of special tokens as those tokens.
        """

    def detokenize(self, tokens: Iterable[int], *, special: bool) -> str:
        """As `Session.detokenize`."""

    def is_end(self, token: int) -> bool:
        """Whether a token ends a generation. Raises ArgumentError if there is no such token."""

    @property
    def n_vocab(self) -> int: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def bos(self) -> int: ...
    @property
    def eos(self) -> int: ...
    @property
    def fim(self) -> tuple[int, int, int, int, int]: ...
    @property
    def chat_template(self) -> str | None: ...

class TextStream:
    """Turns generated tokens into chunks, as a session does: whole characters only, and nothing
    that may be the beginning of a stop string.

    Args:
        tokenizer: Whose tokens they are.
        stop: The text ends before the first of these.

    Attributes:
        n_kept: Tokens wholly before the stop string; all if there is none.
        stop_string: What ended the text, the first given one of those that begin there; "" if
            none has.

    Raises:
        ArgumentError: A stop string is empty.
    """

    def __init__(self, tokenizer: Tokenizer, *, stop: list[str]) -> None: ...
    def push(self, token: int, *, from_draft: bool, logprobs: TokenLogprobs | None) -> bool:
        """Take in a token. Returns whether a stop string is complete: nothing may follow then.
        Raises ArgumentError if there is no such token."""

    def take(self, *, ended: bool) -> list[Chunk]:
        """Return what has become certain, or, if the text has ended, all that is left."""

    @property
    def n_kept(self) -> int: ...
    @property
    def stop_string(self) -> str: ...

class CorpusBuilder:
    """Gathers tokenized texts and writes them as a corpus file, whose format is described in
    csrc/draft/corpus_file.h.

    Args:
        max_tokens: What comes after so many is left out; each text counts as one token more than
            it has. 1 to 2^28.

    Attributes:
        full: There is no room for another token.
        n_tokens: Tokens so far, counted as above.
        n_texts: Texts so far, without the current one.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, max_tokens: int) -> None: ...
    def append(self, tokens: Iterable[int]) -> None:
        """Take in the next tokens of the current text. Raises ArgumentError for a negative id."""

    def end_text(self) -> None:
        """End the current text; one without a token does not count."""

    def write(self, path: str, n_vocab: int, vocabulary: int) -> None:
        """End the current text and write the file.

        Args:
            path: Replaced if it exists; what is there after an error is no corpus.
            n_vocab: Of the tokenizer.
            vocabulary: Its fingerprint.

        Raises:
            SpecllamaError: The file cannot be written.
        """

    @property
    def full(self) -> bool: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_texts(self) -> int: ...

class Corpus:
    """A corpus file, mapped into memory and searched there.

    The places behind the same 4 tokens are held in the order of what comes before these, the last
    token first, so that the longest match stands next to where the text itself would. (A suffix
    array: Manber and Myers, 1993; entered through a hash.)

    Attributes:
        n_tokens: Tokens, each text counted as one more than it has, and one more in all.
        n_texts: Texts.
        n_vocab: Size of the vocabulary.
        vocabulary: Its fingerprint; see `Tokenizer`.
        size_bytes: Size of the file.

    Raises:
        ArgumentError: The file cannot be read, is no corpus, or is damaged.
    """

    def __init__(self, path: str) -> None: ...
    def predict(self, text: Iterable[int], n: int = 4) -> list[MatchedToken]:
        """Copy what followed the longest match of a text's end.

        Of several places with such a match (of 32 from all over, if there are more) those that go
        on as most do decide, token by token. A copy ends with the text that it is copied from.

        Args:
            text: Its last 64 tokens decide.
            n: Most tokens to copy, 0 to 64.

        Returns:
            The copy; empty if not even the last 4 tokens stand in the corpus with others behind.

        Raises:
            ArgumentError: n is out of range.
        """

    @property
    def n_tokens(self) -> int: ...
    @property
    def n_texts(self) -> int: ...
    @property
    def n_vocab(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...

class MatchFinder:
    """Finds where in a text the tokens stand that it, or another text, ends with; what followed
    there is likely to follow again.

    Every position is entered under a hash (FNV-1a) of the 4 tokens that end there. Of the 32 latest
    ones that really agree the longest match wins (64 tokens count as the longest); among equally
    long ones the most frequent next token, and of its occurrences the latest. Constant time per
    token on average, whatever the text; at most 16 bytes per token of the longest text held.
    (Hash chains as in LZ77 compressors: RFC 1951, section 4; copying as a draft: Saxena, "Prompt
    Lookup Decoding", 2023.)

    Args:
        max_tokens: When so many are held and another one comes, the older half is forgotten; 64 to
            2^31.

    Raises:
        ArgumentError: max_tokens is out of range.
    """

    def __init__(self, *, max_tokens: int = 4194304) -> None: ...
    def append(self, token: int) -> None:
        """Take in the next token. Raises ArgumentError for a negative id."""

    def append_batch(self, tokens: Iterable[int]) -> None:
        """Take in tokens in order. Raises ArgumentError for a negative id."""

    def truncate(self, n: int) -> None:
        """Take back all but the first `n` tokens. Raises ArgumentError if there are fewer."""

    def predict(self, n: int = 4, text: Iterable[int] | None = None) -> list[MatchedToken]:
        """Copy what followed the best match of the text's end.

        Args:
            n: Most tokens to copy, 0 to 64.
            text: Another text to continue in place of the one searched; its last 64 tokens decide.

        Returns:
            The copy; empty if not even the last 4 tokens stand elsewhere. A text that continues
            itself runs, past its end, into the copy, and so repeats; a copy for another text stops
            at the end of the text searched.

        Raises:
            ArgumentError: n is out of range.
        """

    def __len__(self) -> int:
        """Tokens taken in, also those forgotten since."""

    @property
    def size_bytes(self) -> int:
        """Memory in use, in bytes."""

class Source(enum.Enum):
    """What a draft token comes from."""

    match = 0
    corpus = 1
    ngram = 2
    grammar = 3
    model = 4
    other = 5
