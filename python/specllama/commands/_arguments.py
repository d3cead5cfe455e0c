"""Arguments shared by subcommands."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from specllama._field import INT32, Field
from specllama.chat.conversation import Conversation
from specllama.commands.default_model import VARIABLE
from specllama.commands.whole_numbers import whole
from specllama.errors import ArgumentError
from specllama.model.hub import SCHEME
from specllama.model.session_options import FIELDS as SESSION_FIELDS
from specllama.model.session_options import HEADINGS as SESSION_HEADINGS
from specllama.requests.json_text import parsed
from specllama.requests.options import FIELDS, GenerateOptions
from specllama.session import SpecSession

_NAME = re.compile(r"(?<!\S)[a-z]+(?:_[a-z]+)*(?=[.,;:]?(?:\s|$))")
"""The Python name of an option in a message. It is between blanks, with at most one punctuation
mark after it, so that parts of paths do not match."""

_SWITCH: dict[str, Literal["auto"] | bool] = {"auto": "auto", "on": True, "off": False}

_DRAFTERS: dict[str, str | None] = {"none": None}
"""Values of --draft that have another value in SpecSession."""

_OF_SERVERS = {"n_seq", "cache_ram", "memory", "memory_file"}
"""Options of a session that only servers use, for several requests."""

SESSION = [
    name for name, field in SESSION_FIELDS.items() if field.flags and name not in _OF_SERVERS
]
"""The options of a session for all commands with a session."""

_OF_COMMANDS = {"max_tokens", "logprobs"}
"""Options of a generation that commands define themselves, or do not have."""

_SAMPLING = [name for name, field in FIELDS.items() if field.flags and name not in _OF_COMMANDS]


_DRAFTING = "Drafting"

_DESTINATIONS = {"max_tokens": "n_predict", "draft": "draft_model"}
"""Names in the parsed arguments that differ from the names in Python."""


def filled(value: str) -> str:
    """Return a value unless it is empty, e.g. from an unset shell variable. For argparse."""
    if not value:
        raise argparse.ArgumentTypeError("is empty; give a value, or leave it out")
    return value


def path(value: str) -> Path:
    """Return a path unless it is empty (which would mean the working directory). For argparse."""
    return Path(filled(value))


def text(value: str) -> str:
    """Return a text if it is UTF-8. For argparse."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("is not UTF-8") from None
    return value


def add_session(parser: argparse.ArgumentParser, *, help: str = "model, a GGUF file") -> None:
    """Add the options that `session_options` reads. `help` is as for `add_models`."""
    drafting, draft = add_models(parser, help=help)
    draft.add_argument(
        "--draft", choices=("auto", "mtp", "ngram", "none"), dest="drafter", default="auto",
        help="drafter used without -md: multi-token prediction by the model (mtp), copies from the "
        "text (ngram), or no speculation (none) (default: auto)",
    )  # fmt: skip
    draft.add_argument(
        "--no-spec", action="store_const", const="none", dest="drafter",
        help="same as --draft none",
    )  # fmt: skip
    _add_grouped(parser, SESSION, SESSION_HEADINGS, {_DRAFTING: drafting})
    parser.add_argument(
        "--no-mmproj", "--no-mmproj-auto", action="store_const", const="none", dest="mmproj",
        help="same as --mmproj none: ignore a projector next to the model",
    )  # fmt: skip
    parser.add_argument(
        "--lora-scaled", dest="lora", type=_scaled_adapters, action="extend",
        metavar="FILE:SCALE,...", help="LoRA adapters, each with a scale (1: as trained)",
    )  # fmt: skip


def _add_grouped(
    parser: argparse.ArgumentParser,
    names: Iterable[str],
    headings: Mapping[str, str],
    groups: Mapping[str, argparse._ArgumentGroup],
) -> None:
    """Add options as `add_options` does. `headings`: each by the name of the option after it.
    `groups`: those that exist already, by heading."""
    group: argparse._ActionsContainer = parser
    for name in names:
        if heading := headings.get(name):
            group = groups.get(heading) or parser.add_argument_group(heading)
        add_options(group, name)


def add_options(
    parser: argparse._ActionsContainer, *names: str, defaults: Mapping[str, object] | None = None
) -> None:
    """Add options of a session or a generation by their Python names, with flags and help from the
    table of options. An option that is not given is None, unless `defaults` has a default of the
    command for it."""
    own = defaults or {}
    for name in names:
        field = SESSION_FIELDS.get(name) or FIELDS[name]
        by_default = own.get(name, field.by_default)
        kwargs: dict[str, Any] = {"dest": name, "default": own.get(name)}
        kwargs["help"] = _help(field, by_default).replace("%", "%%")
        if field.kind == "flag":
            parser.add_argument(
                *field.flags, action="store_const", const=not field.default, **kwargs
            )
        elif name == "lora":
            kwargs |= {"type": _adapters, "action": "extend", "metavar": field.value}
            parser.add_argument(*field.flags, **kwargs)
        elif field.choices:
            parser.add_argument(*field.flags, choices=field.choices, **kwargs)
        else:
            # The core checks the ranges of other numbers when the request or session begins.
            kind = _whole(field, name in own) if field.kind == "integer" else _KINDS[field.kind]
            action = "append" if field.kind == "texts" else "store"
            parser.add_argument(
                *field.flags, type=kind, action=action, metavar=field.value, **kwargs
            )


def given_options(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return the given options among those that `add_options` added, with their Python values."""
    given = {}
    for name in names:
        value = getattr(arguments, name, None)
        if value is None:
            continue
        kind = (SESSION_FIELDS.get(name) or FIELDS[name]).kind
        if kind == "switch":
            value = _SWITCH[value]
        elif kind == "texts":
            value = [text for text in value if text != "none"]
        given[name] = value
    return given


def _whole(field: Field, has_default: bool) -> Callable[[str], int | None]:
    """Return the type of a whole number, for argparse. "auto", which leaves the choice to the
    session, is not allowed if the command has a default of its own."""
    words = {word: number for word, number in (field.words or {}).items()
             if not (has_default and number is None)}  # fmt: skip
    if math.isinf(field.low):
        return whole(words=words)
    return whole(int(field.low), INT32 if math.isinf(field.high) else int(field.high), words=words)


def _help(field: Field, by_default: object) -> str:
    """Return an option's line of help. The flag of a switch that is on turns it off."""
    brief = _small(field.brief)
    if field.kind == "flag" and field.default:
        return f"do not {brief}"
    repeats = "; may be repeated" if field.kind == "texts" else ""
    return f"{brief}{repeats} (default: {by_default})"


def _small(text: str) -> str:
    """Return a sentence that begins with a small letter, unless it begins with a name."""
    first = text.partition(" ")[0]
    return text if first[1:] != first[1:].lower() else text[0].lower() + text[1:]


def _numbers(value: str) -> list[float]:
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
                f"needs a number after the colon, not {scale!r}"
            ) from None
    return adapters


_KINDS: dict[str, Callable[[str], Any]] = {
    "number": float, "text": filled, "texts": text, "numbers": _numbers,
}  # fmt: skip


def session_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments from the options that `add_session` added."""
    return {
        "model": arguments.model,
        "draft": arguments.draft_model or _DRAFTERS.get(arguments.drafter, arguments.drafter),
        **given_options(arguments, SESSION_FIELDS),
        "progress": True,
    }


def add_chat_template(parser: argparse.ArgumentParser) -> None:
    """Add the options for a custom chat template; see `template_options`."""
    parser.add_argument(
        "--chat-template-file", dest="chat_template", type=path, metavar="FILE",
        help="file with a chat template (Jinja), instead of the model's own",
    )  # fmt: skip
    parser.add_argument(
        "--chat-template-kwargs", dest="template_args", type=_object, metavar="JSON",
        help="""variables for the chat template, e.g. '{"enable_thinking": false}'""",
    )  # fmt: skip


def template_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments from the options that `add_chat_template` added."""
    return {"chat_template": arguments.chat_template, "template_args": arguments.template_args}


def add_prompt_form(parser: argparse.ArgumentParser) -> None:
    """Add the options that `prompt_of` uses."""
    parser.add_argument(
        "-sys", "--system-prompt", dest="system", type=text, metavar="TEXT",
        help="system message (for models with a chat template)",
    )  # fmt: skip
    parser.add_argument(
        "-no-cnv", "--no-conversation", "--raw", dest="raw", action="store_true",
        help="continue the prompt as it is, without the chat template",
    )  # fmt: skip


def prompt_of(session: SpecSession, prompt: str, arguments: argparse.Namespace) -> list[int]:
    """Return the tokens of a prompt from the command line. If the model has a chat template and
    -no-cnv is not given, the prompt is a message to answer; else it is a text to continue. Raises
    ArgumentError."""
    if not prompt:
        raise ArgumentError("The prompt is empty; give at least one character.")
    if session.has_chat_template and not arguments.raw:
        conversation = Conversation(arguments.system)
        conversation.ask(prompt)
        return session.render_chat(conversation.messages)
    if arguments.system is not None:
        why = "of -no-cnv" if arguments.raw else "the model has no chat template"
        raise ArgumentError(f"-sys cannot be used because {why}; leave it out.")
    return session.tokenize(prompt)


def add_target_url(parser: argparse.ArgumentParser) -> None:
    """Add the options for a target on another machine; see `target_options`."""
    parser.add_argument(
        "-u", "--target-url", metavar="URL",
        help="use the model of this specllama server; only drafts are made on this machine",
    )  # fmt: skip
    parser.add_argument(
        "--target-key", type=filled,
        help="API key of that server (default: $SPECLLAMA_TARGET_KEY)",
    )  # fmt: skip


def target_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return SpecSession's arguments from the options that `add_target_url` added. Raises
    ArgumentError if --target-key is given without the URL."""
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
    help: str = "model, a GGUF file",
    draft_help: str = "draft model, a GGUF file (default: none; drafts are copied from prompt and "
    "answer; the bundled model has its own)",
) -> tuple[argparse._ArgumentGroup, argparse._MutuallyExclusiveGroup]:
    """Add options for the target and the draft model, each a file or a name on the Hub. They are
    parsed to `model` and `draft_model`, as SpecSession takes them. Return the group of options for
    drafting, and in it the group of those that choose the drafter.

    Args:
        parser: The parser to which they are added.
        help: Help text for the target: the files that can be used.
        draft_help: Help text for the draft model.
    """
    add_target(parser, help=help)
    drafting = parser.add_argument_group(_DRAFTING)
    draft = drafting.add_mutually_exclusive_group()
    draft.add_argument("-md", "--draft-model", "--model-draft", type=filled, help=draft_help)
    draft.add_argument(
        "-hfd", "--hf-repo-draft", dest="draft_model", type=_hub_name, metavar="NAME",
        help="draft model user/repo[:quant] from the Hub, instead of -md; auto: the head in the "
        "repository of -hf, of any size (default: that head, if it is smaller than a tenth of the "
        "model)",
    )  # fmt: skip
    return drafting, draft


def add_target(parser: argparse.ArgumentParser, *, help: str) -> None:
    """Add only the options for the target; see `add_models`."""
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        "-m", "--model", type=filled, help=f"{help} (default: ${VARIABLE}; else SmolLM2-135M, if "
        "it is installed; else the bundled model)",
    )  # fmt: skip
    target.add_argument(
        "-hf", "--hf-repo", dest="model", type=_hub_name, metavar="NAME",
        help="model user/repo[:quant] from the Hugging Face Hub, instead of -m (quant: Q4_K_M "
        "unless it is given)",
    )  # fmt: skip


def generate_options(arguments: argparse.Namespace) -> GenerateOptions:
    """Return the values of the options of a generation that `add_options` added."""
    return cast(GenerateOptions, given_options(arguments, _SAMPLING))


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add all options of a generation that commands share."""
    add_options(parser.add_argument_group("Sampling"), *_SAMPLING)


def with_flags(message: str, parser: argparse.ArgumentParser) -> str:
    """Return an error message with the Python names of options replaced by the command's flags."""
    flags = {one.dest: one.option_strings[0] for one in parser._actions if one.option_strings}
    for name, dest in _DESTINATIONS.items():
        if dest in flags:
            flags[name] = flags[dest]

    def flag(name: re.Match[str]) -> str:
        # Names without "_" are also plain words, unless they are the subject of the sentence.
        is_name = "_" in name[0] or name.start() == 0
        return flags.get(name[0], name[0]) if is_name else name[0]

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
