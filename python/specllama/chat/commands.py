"""Commands of the chat, which begin with a slash."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from specllama import _files
from specllama.chat import typed
from specllama.chat.chat import Chat
from specllama.errors import ArgumentError
from specllama.formats.statistics import in_words


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        names: Its name, then its names in other programs.
        argument: The argument, in brackets if it is optional; "": none.
        brief: A short description.
        run: Executes it with the text after the name.
    """

    names: tuple[str, ...]
    argument: str
    brief: str
    run: Callable[[Chat, str], None]

    @property
    def usage(self) -> str:
        """The name with its argument, and the other names."""
        first, *others = self.names
        usage = f"{first} {self.argument}".strip()
        return f"{usage} ({', '.join(others)})" if others else usage


def execute(chat: Chat, text: str) -> None:
    """Execute a command. Raises ArgumentError if the command does not exist or its argument is
    wrong, and the errors of the command."""
    name, rest = [*text.split(maxsplit=1), ""][:2]
    command = next((one for one in COMMANDS if name in one.names), None)
    if command is None:
        raise ArgumentError(
            f"There is no command {name}; /help lists them. To send it as a message, put a blank "
            "before the slash."
        )
    argument = typed.message(rest)
    if argument and not command.argument:
        raise ArgumentError(f"{name} takes no argument.")
    if not argument and command.argument and not command.argument.startswith("["):
        raise ArgumentError(f"{name} needs a {command.argument}.")
    command.run(chat, argument)


def completions() -> dict[str, bool]:
    """Return all names, and for each whether a path may follow it."""
    return {name: one.argument in ("PATH", "[DRAFTER]") for one in COMMANDS for name in one.names}


def _help(chat: Chat, _: str) -> None:
    width = max(len(one.usage) for one in COMMANDS)
    chat.say("\n".join(f"{one.usage:<{width}}  {one.brief}" for one in COMMANDS))
    chat.say(
        'Several lines: Alt-Enter, a backslash at the end of a line, or """ before and after the '
        "message.\nCtrl-C ends an answer, Ctrl-D the conversation."
    )


def _file(chat: Chat, name: str) -> None:
    _check_named(name)
    for path in chat.attach(name):
        chat.say(f"Attached to the next message: {path}")


def _medium(chat: Chat, name: str) -> None:
    _check_named(name)
    for path in chat.attach_medium(name):
        chat.say(f"Attached to the next message: {path}")


def _system(chat: Chat, text: str) -> None:
    if text:
        chat.conversation.system = None if text == "none" else text
    chat.say(f"System message: {chat.conversation.system or 'none'}")


def _clear(chat: Chat, _: str) -> None:
    chat.clear()
    chat.say("Forgotten.")


def _regenerate(chat: Chat, _: str) -> None:
    if not chat.ask_again():
        raise ArgumentError("There is nothing to answer.")


def _save(chat: Chat, path: str) -> None:
    path = os.path.expanduser(path)
    chat.conversation.save(path)
    chat.say(f"{len(chat.conversation)} messages saved in {path}.")


def _load(chat: Chat, path: str) -> None:
    _check_named(path)
    path = os.path.expanduser(path)
    chat.conversation.load(path)
    chat.say(f"{len(chat.conversation)} messages loaded from {path}.")


def _check_named(path: str) -> None:
    """Raise ArgumentError for standard input and other files that were open at the start: reading
    standard input would consume the next messages, or wait for the terminal."""
    if _files.is_handed_over(path):
        raise ArgumentError(
            f"{path} cannot be read during a conversation; name a file, or give it with -f at the "
            "start."
        )


def _draft(chat: Chat, drafter: str) -> None:
    if drafter:
        chat.model.redraft(drafter)
    chat.say(f"Drafting: {chat.model.drafter}")


def _color(chat: Chat, wish: str) -> None:
    if wish not in ("", "on", "off"):
        raise ArgumentError(f"/color takes on or off, not {wish!r}.")
    chat.colored = not chat.colored if not wish else wish == "on"
    chat.say(f"Colours: {'accepted drafts are green' if chat.colored else 'off'}")


def _stats(chat: Chat, _: str) -> None:
    if not chat.past:
        raise ArgumentError("There is no answer yet.")
    last = chat.past[-1]
    n_tokens = sum(one.generated_tokens for one in chat.past)
    n_accepted = sum(one.accepted for one in chat.past)
    n_rounds = sum(one.rounds for one in chat.past)
    length = last.prompt_tokens + last.generated_tokens
    lines = [
        f"Last answer: {'; '.join(in_words(last))}",
        f"Its prompt: {last.prompt_tokens} tokens, {last.reused_tokens} of them reused; the others "
        f"at {last.prompt_tokens_per_second:.1f} tokens/s",
        f"All answers: {n_tokens} tokens in {n_rounds} rounds, {n_accepted} drafted and accepted",
        f"Context: {length} of {chat.model.session.n_ctx} tokens; seed {last.seed}; "
        f"{'exact' if last.exact else 'exact but for near-ties'}; drafting: {chat.model.drafter}",
    ]
    chat.say("\n".join(lines))


def _exit(chat: Chat, _: str) -> None:
    chat.ended = True


COMMANDS = (
    Command(("/help", "/?"), "", "list the commands", _help),
    Command(
        ("/file", "/read", "/glob"), "PATH", "attach a file, or all that match a pattern, to the "
        "next message", _file,
    ),
    Command(
        ("/image", "/audio"), "PATH", "attach an image or a sound, or all that match a pattern, to "
        "the next message", _medium,
    ),
    Command(("/regen",), "", "answer the last message again", _regenerate),
    Command(("/clear", "/reset"), "", "forget all but the system message", _clear),
    Command(("/system",), "[TEXT]", "show or set the system message (none: remove it)", _system),
    Command(("/save",), "PATH", "save the conversation in a file", _save),
    Command(("/load",), "PATH", "load a conversation from a file", _load),
    Command(
        ("/draft",), "[DRAFTER]", "show or set the drafter: auto, ngram, mtp, none, or a smaller "
        "GGUF", _draft,
    ),
    Command(
        ("/color",), "[on|off]", "colour accepted drafts green, or not (without argument: toggle)",
        _color,
    ),
    Command(("/stats",), "", "show the statistics of the last answer and of all", _stats),
    Command(("/exit", "/quit", "/bye"), "", "end the conversation", _exit),
)  # fmt: skip
"""In the order of `/help`."""
