"""Workloads: texts to replay, prompts that the model continues freely, and conversations that it
answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specllama.errors import ArgumentError
from specllama.model.chat_template import Message
from specllama.session import SpecSession
from specllama.workloads import (
    ANSWERED,
    FREE,
    REPLAYED,
    WORKLOADS,
    Half,
    Replay,
    load,
    load_answered,
    read_jsonl,
)

Kind = Literal["replayed", "generated", "answered"]
"""replayed: the model's choices are replaced by the tokens of a given text. generated: the model's
own choices after a prompt. answered: the model's own choices after its chat template."""


@dataclass(frozen=True)
class Task:
    """A text to replay, a prompt to continue, or a conversation to answer.

    Attributes:
        prompt: The prompt: a text, or messages for the model's chat template.
        reference: The text to replay after it; None: the model chooses.
        temperature: Temperature, if the model chooses.
        seed: Seed, if the model chooses.
    """

    prompt: str | tuple[Message, ...]
    reference: str | None = None
    temperature: float = 0.0
    seed: int = 0

    def prompt_tokens(self, session: SpecSession) -> list[int]:
        """Return the token ids of the prompt.

        Raises:
            ModelError: It is a conversation, and the model has no chat template.
            ArgumentError: The template refuses the messages.
        """
        if isinstance(self.prompt, str):
            return session.tokenize(self.prompt)
        return session.render_chat(self.prompt)


@dataclass(frozen=True)
class Workload:
    """Tasks of one kind, measured together.

    Attributes:
        name: Its name in results.
        kind: The kind of its tasks.
        tasks: At least one.
    """

    name: str
    kind: Kind
    tasks: Sequence[Task]


GENERATED = ("code", *WORKLOADS, "adversarial")
"""code: the prompts of the replayed code. adversarial: the free prompt at temperature 1.5, where
almost no token is predictable: speculation cannot win there, and must not lose."""

_BY_KIND: dict[Kind, Sequence[str]] = {
    "replayed": [*REPLAYED],
    "generated": GENERATED,
    "answered": [*ANSWERED],
}
_KNOWN = [(kind, name) for kind, names in _BY_KIND.items() for name in names]

NAMES = tuple(dict.fromkeys([*_BY_KIND, *(name for _, name in _KNOWN)]))
"""Names for `choose`, kinds first. It also accepts a name with its kind before it, e.g.
"generated-code", to choose one of two workloads with the same name."""


def choose(
    names: str | None,
    path: str | os.PathLike[str] | None,
    n_texts: int,
    half: Half | None = None,
) -> list[Workload]:
    """Return the workloads that the command line names; [] if it names none.

    Args:
        names: "all", or names separated by commas. "answered" means all of that kind, "code" both
            the replayed and the generated one, "generated-code" one of them.
        path: A file of texts to replay, read by `specllama.workloads.read_jsonl`.
        n_texts: Most texts, or seeds, of each workload.
        half: The half of the answered texts; None: all.

    Raises:
        ArgumentError: A workload does not exist, or the file is wrong.
    """
    workloads = [] if path is None else _of_file(read_jsonl(path), n_texts)
    for wanted in filter(None, (names or "").split(",")):
        meant = [one for one in _KNOWN if wanted in ("all", *one, "-".join(one))]
        if not meant:
            raise ArgumentError(f"There is no workload {wanted!r}; choose from {', '.join(NAMES)}.")
        workloads += [_workload(kind, name, n_texts, half) for kind, name in meant]
    if names is not None and not workloads:
        raise ArgumentError("--workload has no name; give at least one.")
    return workloads


def for_model(
    workloads: list[Workload], session: SpecSession, n_texts: int, half: Half | None = None
) -> list[Workload]:
    """Return the given workloads; if there are none, those that suit the model: the answered ones,
    or, if it has no chat template, the replayed and the generated ones.

    Raises:
        ArgumentError: A workload is answered, and the model has no chat template.
    """
    has_template = session.has_chat_template
    if not workloads:
        return choose("answered" if has_template else "replayed,generated", None, n_texts, half)
    for one in workloads:
        if one.kind == "answered" and not has_template:
            raise ArgumentError(
                f"The workload {one.name} needs a chat template, which the model does not have; "
                "use --workload replayed,generated."
            )
    return workloads


def _of_file(replays: Sequence[Replay], n_texts: int) -> list[Workload]:
    by_name: dict[str, list[Replay]] = {}
    for replay in replays:
        by_name.setdefault(replay.workload, []).append(replay)
    return [_replayed(name, texts[:n_texts]) for name, texts in by_name.items()]


def _workload(kind: Kind, name: str, n_texts: int, half: Half | None) -> Workload:
    if kind == "replayed":
        return _replayed(name, load(name)[:n_texts])
    if kind == "generated":
        return _generated(name, n_texts)
    dialogues = load_answered(name, half)[:n_texts]
    return Workload(name, kind, [Task(one.messages) for one in dialogues])


def _replayed(name: str, replays: Sequence[Replay]) -> Workload:
    return Workload(name, "replayed", [Task(one.prompt, one.reference) for one in replays])


def _generated(name: str, n_texts: int) -> Workload:
    if name == "code":
        tasks = [Task(replay.prompt) for replay in load(name)[:n_texts]]
    elif name == "adversarial":
        tasks = [Task(FREE, temperature=1.5, seed=seed) for seed in range(n_texts)]
    else:
        tasks = [Task(WORKLOADS[name])]
    return Workload(name, "generated", tasks)
