"""Files that describe the models of a server: TOML, or INI in llama.cpp's form."""

from __future__ import annotations

import argparse
import configparser
import copy
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from specllama_light.local_models import is_projector

from specllama._files import read_text
from specllama.commands.foreign_options import advice, read, takes_value, translated
from specllama.errors import ArgumentError
from specllama.model.hub import SCHEME
from specllama.server.models.served_model import ModelEntry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ALL = ("*", "default")
"""Sections whose options apply to all models."""

_OF_SERVER = frozenset({
    "alias", "host", "port", "ollama_port", "api_key", "cors_origin", "forwarded_allow_ips",
    "log_file", "models", "models_dir", "models_max", "sleep_idle_seconds", "shutdown_timeout",
    "listen_fd",
})  # fmt: skip
"""Options of the server, not of a model, by their names in Python."""

_OF_PRESETS = ("load-on-startup", "stop-timeout", "dedup-cache-models", "version")
"""Keys that are not options of the command line."""

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?", re.ASCII)
_PART = re.compile(r"-(\d{5})-of-\d{5}$")
_ON, _OFF = ("1", "true", "on", "yes", "enabled"), ("0", "false", "off", "no", "disabled")
_MOST_MODELS = 1000


def read_models(arguments: argparse.Namespace) -> list[ModelEntry]:
    """Return the models of `--models`, in the order of the file, then those of `--models-dir`, by
    name. Raises ArgumentError."""
    sections = {} if arguments.models is None else _sections(arguments.models)
    shared: dict[str, Any] = {}
    for name in _ALL:
        shared |= sections.pop(name, {})
    found = {} if arguments.models_dir is None else dict(_files(arguments.models_dir))
    parser = _Strict(arguments)
    entries = []
    for name in dict.fromkeys((*sections, *found)):
        options = {**shared, **sections.get(name, {})}
        try:
            entries.append(parser.entry(name, options, found.get(name)))
        except ArgumentError as error:
            raise ArgumentError(f"[{name}]: {error}") from None
    if not entries:
        where = arguments.models or arguments.models_dir
        raise ArgumentError(f"{where} has no model; add one.")
    if len(entries) > _MOST_MODELS:
        raise ArgumentError(f"There are {len(entries)} models; at most {_MOST_MODELS} are allowed.")
    return entries


class _Strict:
    """Parses the options of models with the parser of the server's command.

    Args:
        arguments: The server's arguments. Options of models among them override those of the file.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._parser = copy.copy(arguments.parser)
        self._parser.error = _refuse
        self._flags = {
            flag: action for action in self._parser._actions for flag in action.option_strings
        }
        self._known = {flag: action.nargs is None for flag, action in self._flags.items()}
        self._typed = self._of_models(arguments.typed)

    def entry(self, name: str, options: Mapping[str, Any], path: Path | None) -> ModelEntry:
        """Return a model. Raises ArgumentError.

        Args:
            name: Its name.
            options: Its section.
            path: Its file, if it was found in the folder of models.
        """
        starts = _flag_value("load-on-startup", options.get("load-on-startup", False))
        given = [
            argument
            for key, value in options.items()
            if key not in _OF_PRESETS
            for argument in self._arguments(key, value)
        ]
        own, refused = translated(given, self._known, f"[{name}]")
        unknown = [
            advice(one.name, self._known, dict)
            for one in read(own, self._known)
            if one.name not in self._known
        ]
        if refused or unknown:
            raise ArgumentError("; ".join((*refused, *unknown)) + ".")
        line = [*self._of_models(own), *self._typed]
        parsed = self._parser.parse_args(line)
        if parsed.model is None:
            if path is not None:
                line += ["-m", str(path)]
            elif _HUB_NAME.fullmatch(name):
                line += ["-hf", name]
            else:
                raise ArgumentError("it has neither a model (a file) nor hf-repo; add one.")
            parsed = self._parser.parse_args(line)
        # A name on the Hub is resolved when the model is loaded.
        file = Path(parsed.model.removeprefix(SCHEME))
        return ModelEntry(name, line, file, starts)

    def _arguments(self, key: str, value: Any) -> list[str]:
        """Convert an option of a file to arguments. Raises ArgumentError."""
        name = key.strip()
        if name.startswith("LLAMA_ARG_"):
            name = name.removeprefix("LLAMA_ARG_").lower().replace("_", "-")
        flags = [f"--{name.replace('_', '-')}", f"--{name}", f"-{name}"]
        wanted = next((one for one in flags if one in self._known), None)
        if wanted is None:
            wanted = next((one for one in flags if takes_value(one, self._known)), None)
        if wanted is not None and takes_value(wanted, self._known):
            values = value if isinstance(value, list) else [value]
            return [f"{wanted}={_text(one)}" for one in values]
        if _text(value).lower() not in _OFF:
            return [wanted or flags[0]]  # unknown options are reported later
        negated = f"--no-{name.removeprefix('no-')}"
        return [negated] if negated in self._known else []

    def _of_models(self, arguments: Sequence[str]) -> list[str]:
        """Return arguments without those of the server."""
        return [
            argument
            for one in read(arguments, self._known)
            if one.name not in self._flags or self._flags[one.name].dest not in _OF_SERVER
            for argument in one.arguments
        ]


def _refuse(message: str) -> NoReturn:
    raise ArgumentError(f"{message}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _flag_value(name: str, value: Any) -> bool:
    """Return the value of a switch. Raises ArgumentError."""
    text = _text(value).lower()
    if text in _ON or text in _OFF:
        return text in _ON
    raise ArgumentError(f"{name} must be true or false, not {value!r:.80}.")


def _sections(path: Path) -> dict[str, dict[str, Any]]:
    """Return the sections of a file. Raises ArgumentError."""
    text = read_text(path)
    if path.suffix == ".toml":
        try:
            read_file = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ArgumentError(f"{path} is not TOML: {error}.") from None
        shared = {key: one for key, one in read_file.items() if not isinstance(one, dict)}
        tables = {key: one for key, one in read_file.items() if isinstance(one, dict)}
        return {_ALL[1]: shared, **tables}
    ini = configparser.RawConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), strict=False, default_section="\0",
        empty_lines_in_values=False,
    )  # fmt: skip
    ini.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        # Options before the first section apply to all models.
        ini.read_string(f"[{_ALL[1]}]\n{text}", str(path))
    except configparser.Error as error:
        reason = str(error).replace("\n", " ")
        raise ArgumentError(f"{path} is not an INI file: {reason:.200}.") from None
    return {name: dict(ini[name]) for name in ini.sections()}


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names and files of the models in a folder, and of one model in each of its
    subfolders; of a split model, the first part. Raises ArgumentError."""
    try:
        every = sorted(folder.iterdir())
    except OSError as error:
        raise ArgumentError(f"Cannot read {folder}: {error.strerror}.") from None
    for one in every:
        inside = sorted(one.glob("*.gguf")) if one.is_dir() else [one]
        models = [
            file for file in inside
            if file.suffix == ".gguf" and not is_projector(file.name) and _is_first(file)
        ]  # fmt: skip
        for file in models[:1]:
            yield one.name.removesuffix(".gguf"), file


def _is_first(file: Path) -> bool:
    part = _PART.search(file.stem)
    return part is None or int(part[1]) == 1
