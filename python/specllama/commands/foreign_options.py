"""Options of llama.cpp's programs and mlx-lm. Options without an effect here are ignored, those
with an equivalent are translated, and the others are refused, all in one message."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple


class Given(NamedTuple):
    """A typed option: its name, its value (None: none), and its arguments."""

    name: str
    value: str | None
    arguments: list[str]


_SWITCHES = (
    "--jinja --metrics --slots --no-slots --props -cb --cont-batching --no-webui --no-ui --webui "
    "--ui --warmup --no-warmup --perf --no-perf --show-timings --no-show-timings "
    "--no-context-shift --no-escape --no-display-prompt --simple-io --swa-full --check-tensors "
    "--models-autoload "
    "-kvu --kv-unified -no-kvu --no-kv-unified --log-prefix --no-log-prefix --log-timestamps "
    "--no-log-timestamps --log-disable --no-mmproj --no-mmproj-auto --cache-prompt --op-offload "
    "--kv-offload -kvo --repack"
)
_VALUES = (
    "-ub --ubatch-size -tb --threads-batch -fit --fit -fitt --fit-target -dt --defrag-thold "
    "--log-colors -lv --verbosity --log-verbosity -sps --slot-prompt-similarity --cache-reuse "
    "--threads-http --prio --prio-batch --poll --poll-batch --draft-min --draft-n-min "
    "--spec-draft-n-min --spec-draft-p-split --draft-p-split -tbd --threads-batch-draft "
    "-cms --checkpoint-min-step --keep"
)
"""Options, without and with a value, that are ignored: they ask for the default behaviour, or
cannot change an answer."""

IGNORED_SWITCHES = frozenset(_SWITCHES.split())
IGNORED_VALUES = frozenset(_VALUES.split())

IGNORED_BY = {
    "spec-cli": frozenset(("-st", "--single-turn")),
    "specllama chat": frozenset(
        ("-cnv", "--conversation", "-i", "--interactive", "-if", "--interactive-first")
    ),
}
"""Ignored options of single programs."""

_SPEC_TYPES = {"none": ["--draft", "none"], "draft-mtp": ["--draft", "mtp"]}
"""Values of --spec-type. Others need nothing: -md names draft models, and n-grams are the
default."""

RENAMED: dict[str, str] = {
    **dict.fromkeys(
        ("--draft-max", "--draft-n", "--spec-draft-n-max", "--num-draft-tokens"), "--spec-length"
    ),
    "--spec-draft-p-min": "--draft-p-min",
    "--spec-draft-threads": "--threads-draft",
    "--spec-draft-device": "--device-draft",
    "--spec-draft-ngl": "--n-gpu-layers-draft",
    "--spec-draft-model": "--draft-model",
    "--spec-draft-hf": "--hf-repo-draft",
    "-hfrd": "--hf-repo-draft",
    "-hfr": "--hf-repo",
    "--models-preset": "--models",
    "--cors-origins": "--cors-origin",
    "--reverse-prompt": "--stop",
    "-to": "--timeout",
    "-co": "--color",
}
"""Options that have another name here."""

_KV = {
    "-ctk": ("--kv-type", 0), "--cache-type-k": ("--kv-type", 0),
    "-ctv": ("--kv-type", 1), "--cache-type-v": ("--kv-type", 1),
    "-ctkd": ("--kv-type-draft", 0), "--cache-type-k-draft": ("--kv-type-draft", 0),
    "-ctvd": ("--kv-type-draft", 1), "--cache-type-v-draft": ("--kv-type-draft", 1),
}  # fmt: skip
"""Types of keys (0) and of values (1)."""

_LOADING = {"--mlock": "mlock", "--no-mmap": "none", "--mmap": "mmap", "-dio": "dio"}

_ALL_LAYERS = "999"
_THINK = """use --chat-template-kwargs '{"enable_thinking": false}'"""
_AFFINITY = "start the program with taskset or numactl to pin threads"
_CONVERSES = "spec-cli answers once, specllama chat converses; leave it out"
_EMBEDDINGS = "there are no embeddings and no reranking"
_IMAGES = "use specllama chat or spec-cli, or send images and sounds to specllama serve"
_TLS = "put a proxy with TLS, such as Caddy, before the server"

REFUSED: dict[str, tuple[bool, str]] = {
    **dict.fromkeys(("-rea", "--reasoning"), (True, _THINK)),
    **dict.fromkeys(
        ("--numa", "-C", "--cpu-mask", "-Cr", "--cpu-range", "--cpu-strict"), (True, _AFFINITY)
    ),
    **dict.fromkeys(
        ("-cnv", "--conversation", "-st", "--single-turn", "-i", "--interactive", "-if",
         "--interactive-first"), (False, _CONVERSES),
    ),
    **dict.fromkeys(("--embedding", "--embeddings", "--rerank", "--reranking"),
                    (False, _EMBEDDINGS)),
    **dict.fromkeys(("--image", "--audio"), (True, _IMAGES)),
    **dict.fromkeys(("--ssl-key-file", "--ssl-cert-file"), (True, _TLS)),
    **dict.fromkeys(("-mg", "--main-gpu"), (True, "use --device NAME")),
    **dict.fromkeys(("-sm", "--split-mode"), (True, "layers are divided among GPUs; leave it out")),
    **dict.fromkeys(("-ot", "--override-tensor"),
                    (True, "to keep experts on the CPU, use --n-cpu-moe N")),
    **dict.fromkeys(("-nkvo", "--no-kv-offload"),
                    (False, "the KV memory is where its layers are; use a smaller -ngl N")),
    **dict.fromkeys(("-nr", "--no-repack"), (False, "for batch-invariant kernels, use --exact on")),
    **dict.fromkeys(("-mu", "--model-url"), (True, "download the file and use -m FILE, or use -hf "
                                             "user/repo:quant")),
    **dict.fromkeys(("-hft", "--hf-token"), (True, "set the variable HF_TOKEN")),
    "--offline": (False, "set the variable HF_HUB_OFFLINE=1"),
    **dict.fromkeys(("--samplers", "--sampler-seq", "--sampling-seq"),
                    (True, "the order of the steps is llama.cpp's default; leave it out")),
    **dict.fromkeys(("--mirostat", "--mirostat-lr", "--mirostat-ent", "--dynatemp-range",
                     "--dynatemp-exp", "--adaptive-target", "--adaptive-decay"),
                    (True, "use the other sampling options")),
    **dict.fromkeys(("-l", "--logit-bias"), (True, "use the field logit_bias of requests")),
    "--reasoning-format": (True, "thoughts are always returned separately, as reasoning_content; "
                           "leave it out"),
    "--chat-template": (True, "use --chat-template-file FILE"),
    "--no-jinja": (False, "chat templates are always rendered with Jinja; leave it out"),
    "--prompt-cache": (True, "prompts are not stored in files; leave it out"),
    "--prompt-cache-all": (False, "prompts are not stored in files; leave it out"),
    "--api-key-file": (True, "use --api-key KEY, or set the variable SPECLLAMA_API_KEY"),
    "--log-file": (True, "redirect standard error with 2> FILE"),
    "--path": (True, "the server has its own page; leave it out"),
    "--api-prefix": (True, "put a proxy before the server"),
    "--override-kv": (True, "the values in the model's file are used; leave it out"),
    "--context-shift": (False, "a full context ends the answer; raise -c"),
}  # fmt: skip
"""Options without an equivalent: whether a value follows, and the advice."""


class _Translation:
    """The translation of a command line.

    Args:
        known: The options of the command, and for each whether a value follows.
        program: The command's name.

    Attributes:
        arguments: The command line in the command's own options.
        ignored: Names of ignored options.
        refused: A sentence for each option without an equivalent.
    """

    def __init__(self, known: Mapping[str, bool], program: str) -> None:
        self._known = known
        self._nothing = IGNORED_SWITCHES | IGNORED_BY.get(program, frozenset())
        self.arguments: list[str] = []
        self.ignored: list[str] = []
        self.refused: list[str] = []
        self._kv: dict[str, list[str]] = {}
        self._loading: set[str] = set()

    def add(self, given: Given) -> None:
        """Translate one argument."""
        name, value = given.name, given.value
        if name == "--draft" and (value or "").isdigit():  # llama.cpp's name of --draft-max
            self._put("--spec-length", value)
        elif name in self._known or not name.startswith("-"):
            self.arguments += given.arguments
        elif name in self._nothing or name in IGNORED_VALUES:
            self.ignored.append(name)
        elif name in RENAMED and RENAMED[name] in self._known:
            self._put(RENAMED[name], value)
        elif name in _KV and value and _KV[name][0] in self._known:
            option, part = _KV[name]
            self._kv.setdefault(option, ["f16", "f16"])[part] = value
        elif name in _LOADING and "--load-mode" in self._known:
            self._loading.add(_LOADING[name])
        elif name == "--spec-type" and "--draft" in self._known:
            self.arguments += _SPEC_TYPES.get(value or "", [])
        elif name in ("-cmoe", "--cpu-moe") and "--n-cpu-moe" in self._known:
            self._put("--n-cpu-moe", _ALL_LAYERS)
        elif name == "--rope-freq-scale" and "--rope-scale" in self._known and _positive(value):
            self._put("--rope-scale", f"{1 / float(value or 1):g}")
        elif name in ("-hff", "--hf-file") and value and self._name_file(value):
            pass
        elif name in REFUSED:
            self.refused.append(f"{name} is not supported: {REFUSED[name][1]}")
        else:
            self.arguments += given.arguments

    def end(self) -> list[str]:
        """Return the translated command line."""
        for option, (keys, values) in self._kv.items():
            self._put(option, keys if keys == values else f"{keys}/{values}")
        if self._loading:
            self._put("--load-mode", _load_mode(self._loading))
        return self.arguments

    def _put(self, option: str, value: str | None) -> None:
        self.arguments += [option] if value is None else [option, value]

    def _name_file(self, file: str) -> bool:
        """Add a file name to the repository given before; return whether there was one."""
        for i, one in enumerate(self.arguments[:-1]):
            if one in ("-hf", "--hf-repo"):
                self.arguments[i + 1] += f"/{file}"
                return True
        return False


def _load_mode(wanted: set[str]) -> str:
    """Return the mode for llama.cpp's switches: it maps files unless a switch forbids it."""
    if "dio" in wanted:
        return "dio"
    if "mlock" in wanted:
        return "mlock" if "none" in wanted else "mmap+mlock"
    return "none" if "none" in wanted else "mmap"


def _positive(value: str | None) -> bool:
    try:
        return float(value or "") > 0
    except ValueError:
        return False


def takes_value(name: str, known: Mapping[str, bool]) -> bool:
    """Return whether a value follows an option. It may be one of the command's options `known`, or
    an option of another program."""
    if name in known:
        return known[name]
    return (
        name in IGNORED_VALUES
        or name in RENAMED
        or name in _KV
        or name in ("--spec-type", "--rope-freq-scale", "-hff", "--hf-file")
        or REFUSED.get(name, (False, ""))[0]
    )


def read(arguments: Sequence[str], known: Mapping[str, bool]) -> Iterator[Given]:
    """Yield the options and arguments of a command line.

    Args:
        arguments: The command line, without the program's name.
        known: The options of the command, with whether a value follows.
    """
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if equals and name.startswith("-"):
            yield Given(name, value, [argument])
        elif argument.startswith("-") and takes_value(argument, known):
            after = next(rest, None)
            yield Given(argument, after, [argument, *([] if after is None else [after])])
        else:
            yield Given(argument, None, [argument])


def translated(
    arguments: Sequence[str], known: Mapping[str, bool], program: str
) -> tuple[list[str], list[str]]:
    """Return a command line with foreign options translated, and a sentence for each option without
    an equivalent. A line on standard error names the ignored options."""
    translation = _Translation(known, program)
    for given in read(arguments, known):
        translation.add(given)
    if translation.ignored:
        names = ", ".join(dict.fromkeys(translation.ignored))
        have = "has" if len(set(translation.ignored)) == 1 else "have"
        print(f"{program}: {names} {have} no effect.", file=sys.stderr)
    return translation.end(), translation.refused


def advice(
    name: str, known: Collection[str], others: Callable[[], Mapping[str, Collection[str]]]
) -> str:
    """Return advice for an argument that a command with the options `known` does not accept.

    Args:
        name: The argument, without a value after "=".
        known: The options of the command.
        others: Returns the options of all programs, by their names.
    """
    if not name.startswith("-"):
        if name.endswith(".gguf") and "-m" in known:
            return f"unexpected argument {name}; give a model with -m {name}"
        prompted = "; give a prompt with -p" if "-p" in known else ""
        return f"unexpected argument {name!r:.80}{prompted}"
    if owners := [program for program, options in others().items() if name in options]:
        return f"{name} is an option of {' and '.join(owners[:2])}, not of this program"
    # Short options are left out: each would be similar to every other.
    is_word = name.startswith("--") and len(name) > len("--")
    begun = [one for one in known if is_word and one.startswith(name)]
    words = [one for one in known if one.startswith("--")]
    alike = begun or (difflib.get_close_matches(name, words, n=1, cutoff=0.75) if is_word else [])
    meant = f"; did you mean {alike[0]}?" if alike else ""
    return f"there is no option {name}{meant}"
