"""The console script `spec-cli`: the executable in the package, or the same inside Python."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from specllama_light.default_model import installed_model

_NAMES = {"-hf": "-m", "--hf-repo": "-m", "-hfd": "-md", "--hf-repo-draft": "-md"}
"""Options that take a name on the Hub, mapped to the option that takes a file instead."""

_PROMPTS = ("-p", "--prompt", "-f", "--file", "-")

_FOR_BUNDLED = ("--corpus",)
"""Options whose file is made for one vocabulary: the bundled model's, if no model is named."""

_FILES = ("-m", "--model", "-md", "--draft-model", "--model-draft")

_TARGETS = ("-m", "--model", "-hf", "--hf-repo")
_DRAFTS = ("-md", "--draft-model", "--model-draft", "-hfd", "--hf-repo-draft")

_GRAMMARS = ("--grammar", "--grammar-file")
_SCHEMAS = ("-j", "--json-schema", "-jf", "--json-schema-file")
_REGEX = "--regex"

_FORMS = (*_GRAMMARS, *_SCHEMAS, _REGEX)
"""Options that say what the text must follow."""

_FILES_OF_GRAMMARS = ("--grammar-file", "-jf", "--json-schema-file")

_ABOUT = frozenset(("-h", "--help", "--version", "--list-devices"))
"""Options with which the executable opens no model."""

SWITCHES = _ABOUT.union((
    "-", "-e", "--escape", "--speculative-decoding", "--no-spec", "--stats", "--json",
    "-v", "--verbose", "--ignore-eos",
))  # fmt: skip
"""Options without a value. After any other option the next argument is its value, whatever it looks
like."""

OPTIONS = SWITCHES.union(_PROMPTS, _NAMES, _FILES, _SCHEMAS, _FOR_BUNDLED, (_REGEX,), (
    "-n", "--n-predict", "--predict", "-r", "--stop", "--temp", "--temperature", "--top-nsigma",
    "--top-n-sigma", "--top-k", "--typical", "--typical-p", "--top-p", "--min-p",
    "--xtc-probability", "--xtc-threshold", "--repeat-penalty", "--presence-penalty",
    "--frequency-penalty", "--repeat-last-n", "--dry-multiplier", "--dry-base",
    "--dry-allowed-length", "--dry-penalty-last-n", "--dry-sequence-breaker", "--logprobs",
    "--acceptance", "--lenience", "--grammar", "--grammar-file", "-s", "--seed", "-c", "--ctx-size",
    "-b", "--batch-size", "-t", "--threads", "-ngl", "--n-gpu-layers", "--gpu-layers", "-ts",
    "--tensor-split", "-ncmoe", "--n-cpu-moe", "-dev", "--device", "--rpc", "-fa", "--flash-attn",
    "-kv", "--kv-type", "-ngld", "--n-gpu-layers-draft", "--gpu-layers-draft", "-devd",
    "--device-draft", "--lora", "--lora-scaled", "-lm", "--load-mode", "--rope-scaling",
    "--rope-scale", "--rope-freq-base", "--yarn-orig-ctx", "--draft", "--spec-length",
    "--spec-tree", "--color",
))  # fmt: skip
"""All options that the executable knows."""


class _Argument(NamedTuple):
    """An option, its value (None: it has none, or none was given), and the arguments as given."""

    option: str
    value: str | None
    given: list[str]


def executable() -> Path:
    """Return the path of the executable."""
    from specllama import _build

    return Path(_build.__file__).parent / "bin" / "spec-cli"


def _read(arguments: Sequence[str]) -> Iterator[_Argument]:
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        if equals and option.startswith("--"):
            yield _Argument(option, value, [argument])
        elif argument in SWITCHES or not argument.startswith("-"):
            yield _Argument(argument, None, [argument])
        else:
            behind = next(rest, None)
            yield _Argument(argument, behind, [argument, *([] if behind is None else [behind])])


def with_files(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with models' names on the Hub replaced by their files.

    The executable has no Python, so models that it opens are downloaded before it starts. Raises
    what `hub.fetch` raises, and ArgumentError if a model is given in both ways.
    """
    from specllama.errors import ArgumentError
    from specllama.model.hub import SCHEME, fetch

    options = {one.option for one in _read(arguments)}
    for what, ways in (("model", _TARGETS), ("draft model", _DRAFTS)):
        files, names = ([one for one in ways if one in kind] for kind in (_FILES, _NAMES))
        if options.intersection(files) and options.intersection(names):
            raise ArgumentError(f"Give the {what} with {files[0]} or with {names[0]}, not both.")
    result: list[str] = []
    for option, value, given in _read(arguments):
        is_name = option in _NAMES or (option in _FILES and (value or "").startswith(SCHEME))
        if value is not None and is_name:
            file = value if options & _ABOUT else fetch(value)
            result += [_NAMES.get(option, option), file]
        else:  # also wrong ones, of which the executable complains
            result += given
    return result


def with_grammar(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with a grammar, a JSON schema or a regular expression replaced
    by a grammar in Lark. Raises ArgumentError if it cannot be read or enforced, and what
    `_files.read_prompt` raises."""
    from specllama import _files
    from specllama.errors import ArgumentError

    forms = [one.option for one in _read(arguments) if one.option in _FORMS]
    if len(set(forms)) > 1 or (len(forms) > 1 and forms[0] not in _GRAMMARS):
        raise ArgumentError(f"Give one of {', '.join(_FORMS)}.")
    result: list[str] = []
    for option, value, given in _read(arguments):
        if option not in _FORMS or not value:  # the core says that a value is missing
            result += given
            continue
        if option in _FILES_OF_GRAMMARS:
            value = _files.read_prompt(value)
        try:
            result += ["--grammar", _lark(option, value)]
        except ArgumentError as error:
            raise ArgumentError(str(error).replace("json_schema", option, 1)) from None
    return result


def _lark(option: str, value: str) -> str:
    """Return what an option asks for as a grammar in Lark, and print what is not enforced."""
    from specllama._core import GrammarSyntax
    from specllama.requests import lark
    from specllama.requests.grammar import constraint, read_schema

    if option == _REGEX:
        return lark.lark({"start": lark.regex_rule(value)})
    if option in _SCHEMAS:
        schema = read_schema(value)
        for remark in schema.remarks:
            print(f"spec-cli: {option}: {remark}.", file=sys.stderr)
        return lark.lark({"start": lark.json_rule(schema.text)})
    grammar, syntax = constraint(value, None, None)
    if syntax is GrammarSyntax.json_schema:
        return lark.lark({"start": lark.json_rule(grammar)})
    return grammar


def with_default_model(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with SmolLM2 added as the model, if it is installed and they have a
    prompt but no option that determines the model; else return them unchanged."""
    options = {one.option for one in _read(arguments)}
    named = options.intersection([*_NAMES, *_FILES, *_FOR_BUNDLED])
    model = installed_model()
    if model is None or named or not options.intersection(_PROMPTS):
        return list(arguments)
    return ["-m", str(model), *arguments]


def _check_options(arguments: Sequence[str]) -> None:
    """Raise ArgumentError for an unknown option; the message says what does the same, if known."""
    options = [one.option for one in _read(arguments)]
    unknown = [one for one in options if one.startswith("-") and one not in OPTIONS]
    if unknown:
        from specllama.commands.foreign_options import advice
        from specllama.errors import ArgumentError

        said = advice(unknown[:1], sorted(OPTIONS))
        raise ArgumentError(f"{said}; see spec-cli --help.")


def main() -> NoReturn:
    """Run spec-cli: its executable in place of this process or, with a grammar, which needs
    llguidance, in this process."""
    from specllama._llama import check_version
    from specllama.errors import SpecllamaError

    check_version()
    path = executable()
    try:
        given = sys.argv[1:]
        _check_options(given)
        arguments = with_files(with_default_model(with_grammar(given)))
    except SpecllamaError as error:
        print(f"spec-cli: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)
    # Python ignores SIGPIPE, and execv keeps that: the executable would go on writing into a pipe
    # that nobody reads any more.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if not {one.option for one in _read(arguments)}.intersection(_FORMS):
        os.execv(path, [str(path), *arguments])
    from specllama import _core

    sys.exit(_core.spec_cli([os.fsencode(one) for one in [str(path), *arguments]]))
