"""The console script `spec-cli`: runs the code of the executable in the package inside Python,
which finds models, reads grammars and renders chat templates."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from specllama.commands.foreign_options import Given, read

if TYPE_CHECKING:
    from specllama._core import MediaPrompt, Session

_NAMES = {"-hf": "-m", "--hf-repo": "-m", "-hfd": "-md", "--hf-repo-draft": "-md"}
"""Options for a name on the Hub, each with the option for a file."""

_PROMPTS = ("-p", "--prompt", "-f", "--file", "-")

_PROJECTORS = ("-mm", "--mmproj")
_FILES = ("-m", "--model", "-md", "--draft-model", "--model-draft", *_PROJECTORS)

_TARGETS = ("-m", "--model", "-hf", "--hf-repo")
_DRAFTS = ("-md", "--draft-model", "--model-draft", "-hfd", "--hf-repo-draft")

_MEDIA = ("--image", "--audio")

_GRAMMARS = ("--grammar", "--grammar-file")
_SCHEMAS = ("-j", "--json-schema", "-jf", "--json-schema-file")
_REGEX = "--regex"

_FORMS = (*_GRAMMARS, *_SCHEMAS, _REGEX)
"""Options that constrain the text."""

_FILES_OF_GRAMMARS = ("--grammar-file", "-jf", "--json-schema-file")

_ABOUT = frozenset(("-h", "--help", "--version", "--list-devices"))
"""Options with which the executable does not open a model."""


def executable() -> Path:
    """Return the path of the executable."""
    from specllama import _build

    return Path(_build.__file__).parent / "bin" / "spec-cli"


def _known() -> dict[str, bool]:
    """Return the executable's options, and for each whether a value follows."""
    from specllama._core import spec_cli_flags

    return spec_cli_flags()


def _is_hub_name(given: Given) -> bool:
    from specllama.model.hub import SCHEME

    is_file = given.name in _FILES
    return given.name in _NAMES or (is_file and (given.value or "").startswith(SCHEME))


def _says_none(given: Given) -> bool:
    """Whether an option excludes a file that drafts."""
    return given.name == "--no-spec" or (given.name == "--draft" and given.value != "auto")


def _is_of_repository(given: Given) -> bool:
    """Whether an option chooses the head in the target's repository."""
    from specllama.model.hub import DRAFT_OF_THE_REPOSITORY, SCHEME

    name = SCHEME + (given.value or "").removeprefix(SCHEME)
    return given.name in _DRAFTS and _is_hub_name(given) and name == DRAFT_OF_THE_REPOSITORY


def _needs_projector(given: Sequence[Given]) -> bool:
    """Whether there are images or sounds, but no projector is named."""
    options = {one.name for one in given}
    return bool(options.intersection(_MEDIA)) and not options.intersection(_PROJECTORS)


def with_projector(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with the projector added that is next to the model, if there
    are images or sounds and none is named."""
    from specllama.model.projector import projector_beside

    given = list(read(arguments, _known()))
    models = [one.value for one in given if one.name in _TARGETS and one.value]
    found = projector_beside(models[-1]) if models and _needs_projector(given) else None
    return [*arguments, *([_PROJECTORS[0], found] if found else [])]


def with_files(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with names on the Hub replaced by their downloaded files.
    Raises the errors of `hub.local_path`, and ArgumentError if a model is given in both ways."""
    from specllama.errors import ArgumentError
    from specllama.model.hub import Heads, fetch, local_path

    given = list(read(arguments, _known()))
    options = {one.name for one in given}
    for what, ways in (("model", _TARGETS), ("draft model", _DRAFTS)):
        files, names = ([one for one in ways if one in kind] for kind in (_FILES, _NAMES))
        if options.intersection(files) and options.intersection(names):
            raise ArgumentError(f"Give the {what} with {files[0]} or with {names[0]}, not both.")
    chosen = any(one.name in _DRAFTS or _says_none(one) for one in given)
    heads: Heads = "none" if chosen else "small"
    if any(map(_is_of_repository, given)):
        heads = "any"
        if not any(_is_hub_name(one) for one in given if one.name in _TARGETS):
            raise ArgumentError("-hfd auto requires -hf: it uses the head of that repository.")
    result: list[str] = []
    for one in given:
        option, value, typed = one
        if _is_of_repository(one):
            continue
        if value and (option in _NAMES or option in _FILES):
            if _is_hub_name(one) and not options & _ABOUT:
                value = (
                    fetch(value, heads, projector=_needs_projector(given))
                    if option in _TARGETS
                    else fetch(value)
                )
            elif not options & _ABOUT:
                value = local_path(option, value)
            result += [_NAMES.get(option, option), value]
        else:  # the executable reports wrong ones
            result += typed
    return result


def with_grammar(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments with a grammar, a JSON schema or a regular expression replaced
    by a grammar in Lark. Raises ArgumentError if it cannot be read or enforced, and the errors of
    `_files.read_prompt`."""
    from specllama import _files
    from specllama.errors import ArgumentError

    forms = [one.name for one in read(arguments, _known()) if one.name in _FORMS]
    if len(set(forms)) > 1 or (len(forms) > 1 and forms[0] not in _GRAMMARS):
        raise ArgumentError(f"Give one of {', '.join(_FORMS)}.")
    result: list[str] = []
    for option, value, given in read(arguments, _known()):
        if option not in _FORMS or not value:  # the core reports a missing value
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
    """Return the Lark grammar for an option, and print its remarks."""
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
    """Return the arguments, with the default model added if they have a prompt but no model.
    (Without a prompt, the executable demonstrates the bundled model.) Raises the errors of
    `hub.fetch`."""
    from specllama import _files
    from specllama.commands.default_model import default_model
    from specllama.model.hub import local_path

    options = {one.name for one in read(arguments, _known())}
    has_prompt = bool(options.intersection(_PROMPTS)) or _files.input_is_piped()
    if not has_prompt or options.intersection([*_TARGETS, *_ABOUT]):
        return list(arguments)
    model = default_model("spec-cli")
    return list(arguments) if model is None else ["-m", local_path("-m", model), *arguments]


def with_own_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with options of other programs translated. Raises ArgumentError with all
    unknown options."""
    from specllama.commands.foreign_options import advice, translated
    from specllama.errors import ArgumentError

    known = _known()
    own, refused = translated(arguments, known, "spec-cli")
    names = [one.name for one in read(own, known)]
    # A text after an unknown option is probably its value.
    unknown = [name for name in names if name.startswith("-")]
    if all(name in known or name == "-" for name in unknown):
        unknown = names
    refused += [
        advice(name, known, _options_of_commands)
        for name in dict.fromkeys(unknown)
        if name not in known and name != "-"
    ]
    if refused:
        raise ArgumentError(f"{'; '.join(refused)}; see spec-cli --help.")
    return own


def _options_of_commands() -> dict[str, dict[str, bool]]:
    from specllama.__main__ import options_of_commands

    return options_of_commands()


def _chat(
    backend: Session, system: str | None, message: str, media: Sequence[str]
) -> list[int] | MediaPrompt:
    """Return the prompt for a session's model to answer a message after images and sounds."""
    from specllama.model import media_prompt
    from specllama.model.loaded_model import LoadedModel
    from specllama.model.template_options import TemplateOptions

    messages: list[dict[str, Any]] = []
    if system is not None:
        messages.append({"role": "system", "content": system})
    content = [*map(_part, media), {"type": "text", "text": message}] if media else message
    messages.append({"role": "user", "content": content})
    model = LoadedModel(backend, "", TemplateOptions.checked(None, None))
    prompt = model.render_chat(messages)
    return prompt.core if isinstance(prompt, media_prompt.MediaPrompt) else prompt


def _part(path: str) -> dict[str, Any]:
    """Return an image or a sound in a file as a part of a message."""
    from specllama import _files
    from specllama.media.sound import is_sound

    kind = "audio" if is_sound(_files.read(path)) else "image"
    return {"type": kind, kind: path}


def main() -> NoReturn:
    """Run spec-cli."""
    from specllama import _core
    from specllama._llama import check_version
    from specllama.errors import SpecllamaError

    check_version()
    try:
        given = with_own_options(sys.argv[1:])
        arguments = with_projector(with_files(with_grammar(given)))
        _core.check_spec_cli(arguments)
        arguments = with_default_model(arguments)
    except SpecllamaError as error:
        print(f"spec-cli: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)
    # Python ignores SIGPIPE, so the program would continue after the reader has closed the pipe.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(_core.spec_cli([os.fsencode(one) for one in [str(executable()), *arguments]], _chat))
