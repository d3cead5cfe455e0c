"""Arguments that subcommands share."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from specllama.commands.whole_numbers import whole
from specllama.errors import ArgumentError
from specllama.model.hub import SCHEME
from specllama.requests.json_text import parsed
from specllama.requests.options import FIELDS, GenerateOptions

SWITCH: dict[str, Literal["auto"] | bool] = {"auto": "auto", "on": True, "off": False}
"""SpecSession's value for each value of --exact and --flash-attn."""

_DESTINATIONS = {
    "n_ctx": "ctx_size", "n_threads": "threads", "max_tokens": "n_predict",
    "draft_n_gpu_layers": "n_gpu_layers_draft", "draft_device": "device_draft",
}  # fmt: skip
"""Attributes of the parsed arguments, by the names that these options have in Python."""

# The Python name of an option in a message: between blanks, with at most one punctuation mark after
# it, so that no part of a path matches. Such names have an underscore, except `temperature`.
_NAME = re.compile(r"(?<!\S)(?:[a-z]+(?:_[a-z]+)+|temperature)(?=[.,;:]?(?:\s|$))")

_DRAFTERS: dict[str, str | None] = {"none": None}
"""SpecSession's values for those values of --draft that it calls otherwise."""

_SAMPLING = [name for name, field in FIELDS.items() if field.flags]


def filled(value: str) -> str:
    """Return the value of an option, or an argument, unless it is empty, as that of a variable that
    is not set. For argparse."""
    if not value:
        raise argparse.ArgumentTypeError("is empty; give a value, or leave it out")
    return value


def path(value: str) -> Path:
    """Return a path that is not empty, which would mean the working directory. For argparse."""
    return Path(filled(value))


def text(value: str) -> str:
    """Return what is typed if it is UTF-8. For argparse."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("is not UTF-8") from None
    return value


def add_session(
    parser: argparse.ArgumentParser,
    *,
    help: str,
    bundled: bool = True,
) -> None:
    """Add the options that `session_options` reads. `help` is as for `add_models`; `bundled` tells
    whether the command falls back on the bundled model."""
    others = "n-grams, or the bundled one" if bundled else "n-grams"
    draft_help = f"GGUF file that drafts (default: {others})"
    draft = add_models(parser, help=help, draft_help=draft_help)
    draft.add_argument(
        "--draft", choices=("auto", "mtp", "ngram", "none"), dest="drafter", default="auto",
        help="who drafts without -md; none: nobody (auto)",
    )  # fmt: skip
    draft.add_argument(
        "--no-spec", action="store_const", const="none", dest="drafter",
        help="the same as --draft none",
    )  # fmt: skip
    parser.add_argument(
        "-c", "--ctx-size", type=whole(), help="tokens of context, for each request"
    )
    parser.add_argument("-t", "--threads", type=whole(), help="threads (the performance cores)")
    parser.add_argument(
        "-ngl", "--n-gpu-layers", "--gpu-layers", type=whole(), help="GPU layers (as many as fit)"
    )
    parser.add_argument(
        "-ts", "--tensor-split", type=_parts, metavar="N,N,...",
        help="parts of the layers for each GPU (as they fit)",
    )  # fmt: skip
    parser.add_argument(
        "-ncmoe", "--n-cpu-moe", type=whole(),
        help="layers whose experts stay in main memory (as few as needed)",
    )  # fmt: skip
    parser.add_argument(
        "-dev", "--device", metavar="NAME,...",
        help="GPUs that hold them, by `spec-cli --list-devices`, or none (all)",
    )  # fmt: skip
    parser.add_argument(
        "-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", type=whole(),
        help="GPU layers of the draft model (as -ngl)",
    )  # fmt: skip
    parser.add_argument(
        "-devd", "--device-draft", metavar="NAME,...", help="GPUs of the draft model (as -dev)"
    )
    parser.add_argument("-kv", "--kv-type", help="type of the KV memory (as a session chooses)")
    add_rpc(parser)
    add_lora(parser)
    parser.add_argument(
        "-lm", "--load-mode", default="auto",
        choices=("auto", "none", "mmap", "mlock", "mmap+mlock", "dio"),
        help="how weights get into main memory, e.g. mapped or locked there (auto)",
    )  # fmt: skip
    _add_rope(parser)
    parser.add_argument(
        "--spec-length", type=whole(1, 64, words={"auto": "auto"}), default="auto",
        help="most drafted tokens, or auto: as many as pay (auto)",
    )  # fmt: skip
    parser.add_argument(
        "--spec-tree", type=whole(1, 8, words={"auto": "auto", "off": "off"}), default="auto",
        metavar="auto|off|K",
        help="most guesses at a position verified at once; auto: one, so far (auto)",
    )  # fmt: skip
    add_corpus(parser)


def add_lora(parser: argparse.ArgumentParser) -> None:
    """Add --lora and --lora-scaled: pairs of a path and its scale, in `lora`."""
    parser.add_argument(
        "--lora", type=_adapters, action="extend", default=[], metavar="FILE,...",
        help="LoRA adapters of the model",
    )  # fmt: skip
    parser.add_argument(
        "--lora-scaled", dest="lora", type=_scaled_adapters, action="extend",
        default=argparse.SUPPRESS, metavar="FILE:SCALE,...",
        help="the same, and how much of each counts (1)",
    )  # fmt: skip


def _add_rope(parser: argparse.ArgumentParser) -> None:
    """Add how positions are turned; what is left out is as the model's file says."""
    parser.add_argument(
        "--rope-scaling", choices=("none", "linear", "yarn"),
        help="how positions are turned in contexts longer than trained (the file's)",
    )  # fmt: skip
    parser.add_argument(
        "--rope-scale", type=float, metavar="N", help="by how much the context is stretched"
    )
    parser.add_argument("--rope-freq-base", type=float, metavar="N", help="base of the frequencies")
    parser.add_argument(
        "--yarn-orig-ctx", type=whole(), help="for yarn: tokens of context trained with"
    )


def _parts(value: str) -> list[float]:
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"needs numbers with commas between them, not {value!r}"
        ) from None


def _adapters(value: str) -> list[tuple[str, float]]:
    return [(filled(path), 1.0) for path in value.split(",")]


def _scaled_adapters(value: str) -> list[tuple[str, float]]:
    adapters = []
    for one in value.split(","):
        path, _, scale = one.rpartition(":")
        if not path:
            raise argparse.ArgumentTypeError(f"needs FILE:SCALE, not {one!r}")
        try:
            adapters.append((path, float(scale)))
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"needs a number behind the colon, not {scale!r}"
            ) from None
    return adapters


def session_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments, read from the options that `add_session` added."""
    return {
        "model": arguments.model,
        "draft": arguments.draft_model or _DRAFTERS.get(arguments.drafter, arguments.drafter),
        "n_ctx": arguments.ctx_size,
        "n_threads": arguments.threads,
        "n_gpu_layers": arguments.n_gpu_layers,
        "n_cpu_moe": arguments.n_cpu_moe,
        "tensor_split": arguments.tensor_split,
        "device": arguments.device,
        "draft_n_gpu_layers": arguments.n_gpu_layers_draft,
        "draft_device": arguments.device_draft,
        "kv_type": arguments.kv_type,
        "rpc": arguments.rpc,
        "lora": arguments.lora or None,
        "load_mode": arguments.load_mode,
        "rope_scaling": arguments.rope_scaling,
        "rope_scale": arguments.rope_scale,
        "rope_freq_base": arguments.rope_freq_base,
        "yarn_orig_ctx": arguments.yarn_orig_ctx,
        "spec_length": arguments.spec_length,
        "spec_tree": arguments.spec_tree,
        "corpus": arguments.corpus,
        "progress": True,
    }


def add_chat_template(parser: argparse.ArgumentParser) -> None:
    """Add the options for a custom chat template; see `template_options`."""
    parser.add_argument(
        "--chat-template-file", dest="chat_template", type=path, metavar="FILE",
        help="Jinja, instead of the model's own chat template",
    )  # fmt: skip
    parser.add_argument(
        "--chat-template-kwargs", dest="template_args", type=_object, metavar="JSON",
        help="""passed to it by every chat, e.g. '{"enable_thinking": false}'""",
    )  # fmt: skip


def template_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments, read from the options that `add_chat_template` added."""
    return {"chat_template": arguments.chat_template, "template_args": arguments.template_args}


def add_target_url(parser: argparse.ArgumentParser) -> None:
    """Add the options for a target on another machine; see `target_options`."""
    parser.add_argument(
        "-u", "--target-url", metavar="URL",
        help="instead of a model here: a specllama server that verifies drafts made here",
    )  # fmt: skip
    parser.add_argument(
        "--target-key", type=filled,
        help="its API key (the variable SPECLLAMA_TARGET_KEY, or none)",
    )  # fmt: skip


def target_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments, read from the options that `add_target_url` added. Raises
    ArgumentError if others of these are given without the URL."""
    if arguments.target_url is None:
        if arguments.target_key:
            raise ArgumentError("--target-key requires --target-url (-u).")
        return {"target": None}
    key = arguments.target_key or os.environ.get("SPECLLAMA_TARGET_KEY") or None
    return {
        "target": arguments.target_url,
        "target_key": key,
    }


def add_models(
    parser: argparse.ArgumentParser,
    *,
    help: str,
    draft_help: str = "GGUF file that drafts (default: n-grams)",
    required: bool = False,
) -> argparse._MutuallyExclusiveGroup:
    """Add options for the target and the draft model, each a file or a name on the Hub. They are
    parsed to `model` and `draft_model`, as SpecSession takes them. Return the group of options that
    choose the drafter.

    Args:
        parser: The parser to add them to.
        help: Help text for the target: which files will do.
        draft_help: Help text for the draft model.
        required: Whether a target must be named, as there is none to fall back on.
    """
    add_target(parser, help=help, required=required)
    draft = parser.add_mutually_exclusive_group()
    draft.add_argument("-md", "--draft-model", "--model-draft", type=filled, help=draft_help)
    draft.add_argument(
        "-hfd", "--hf-repo-draft", dest="draft_model", type=_hub_name, metavar="NAME",
        help="instead: user/repo[:quant] of the Hub",
    )  # fmt: skip
    return draft


def add_target(parser: argparse.ArgumentParser, *, help: str, required: bool = False) -> None:
    """Add only the options for the target; see `add_models`."""
    target = parser.add_mutually_exclusive_group(required=required)
    target.add_argument("-m", "--model", type=filled, help=help)
    target.add_argument(
        "-hf", "--hf-repo", dest="model", type=_hub_name, metavar="NAME",
        help="instead: user/repo[:quant] of the Hugging Face Hub (Q4_K_M)",
    )  # fmt: skip


def add_rpc(parser: argparse.ArgumentParser) -> None:
    """Add the option for RPC servers, parsed as SpecSession takes it."""
    parser.add_argument(
        "--rpc", metavar="HOST:PORT,...",
        help="RPC servers that hold layers, too; unencrypted (docs/rpc.md) (none)",
    )  # fmt: skip


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the option for a corpus, parsed as SpecSession takes it."""
    parser.add_argument(
        "--corpus", type=filled, metavar="FILE",
        help="file by `specllama corpus build`, to copy from (none)",
    )  # fmt: skip


def add_exact(parser: argparse.ArgumentParser) -> None:
    """Add --exact; its value is a key of `SWITCH`."""
    parser.add_argument("--exact", choices=SWITCH, default="auto", help="as a session's (auto)")


def add_sampling(
    parser: argparse.ArgumentParser, *names: str, defaults: Mapping[str, float] | None = None
) -> None:
    """Add the options of a generation with these Python names; without names, all that have flags.
    `defaults` has the defaults of options whose default here is not the one in Python."""
    own = defaults or {}
    for name in names or _SAMPLING:
        field = FIELDS[name]
        brief = field.brief[0].lower() + field.brief[1:]
        # The range is checked with the rest of a request.
        kind = whole() if field.kind is int else field.kind
        parser.add_argument(
            *field.flags, dest=name, type=kind, default=own.get(name, field.default),
            help=f"{brief} ({own.get(name, field.by_default)})",
        )  # fmt: skip


def generate_options(arguments: argparse.Namespace) -> GenerateOptions:
    """Return the values of all options that `add_sampling` added."""
    found = {name: getattr(arguments, name) for name in _SAMPLING if hasattr(arguments, name)}
    return cast(GenerateOptions, found)


def with_flags(message: str, parser: argparse.ArgumentParser) -> str:
    """Return an error message of the package with the Python names of options replaced by the flags
    of the command that `parser` reads."""
    flags = {one.dest: one.option_strings for one in parser._actions if one.option_strings}

    def flag(name: re.Match[str]) -> str:
        known = flags.get(name[0]) or flags.get(_DESTINATIONS.get(name[0], ""))
        same = "--" + name[0].replace("_", "-")
        return name[0] if known is None else same if same in known else known[0]

    return _NAME.sub(flag, message)


def _object(value: str) -> dict[str, Any]:
    try:
        given = parsed(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is not JSON: {error!s:.200}") from None
    if not isinstance(given, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, not {value!r:.80}")
    return given


def _hub_name(name: str) -> str:
    return SCHEME + name.removeprefix(SCHEME)
