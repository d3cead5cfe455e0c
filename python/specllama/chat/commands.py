"""Commands of the chat: what begins with a slash."""

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
        names: Its name, then names that it has in other programs.
        argument: What follows the name, in brackets if it is optional; "": nothing.
        brief: What it does.
        run: Executes it, with the text after the name.
    """

    names: tuple[str, ...]
    argument: str
    brief: str
    run: Callable[[Chat, str], None]

    @property
    def usage(self) -> str:
        """How it is typed: the name with its argument, and the other names."""
        first, *others = self.names
        usage = f"{first} {self.argument}".strip()
        return f"{usage} ({', '.join(others)})" if others else usage


def execute(chat: Chat, text: str) -> None:
    """Execute a command. Raises ArgumentError if there is no such command, or its argument is
    wrong, and whatever the command raises."""
    name, rest = [*text.split(maxsplit=1), ""][:2]
    command = next((one for one in COMMANDS if name in one.names), None)
    if command is None:
        raise ArgumentError(
            f"There is no command {name}; /help lists them, and a blank before the slash makes it "
            "a message."
        )
    argument = typed.message(rest)
    if argument and not command.argument:
        raise ArgumentError(f"{name} takes nothing behind it.")
    if not argument and command.argument and not command.argument.startswith("["):
        raise ArgumentError(f"{name} needs a {command.argument}.")
    command.run(chat, argument)


def completions() -> dict[str, bool]:
    """Return all names, and for each whether a path follows it."""
    return {name: one.argument in ("PATH", "[WHO]") for one in COMMANDS for name in one.names}


def _help(chat: Chat, _: str) -> None:
    width = max(len(one.usage) for one in COMMANDS)
    chat.say("\n".join(f"{one.usage:<{width}}  {one.brief}" for one in COMMANDS))
    chat.say(
        'Alt-Enter, or a backslash at its end, begins another line; """ stands before and after a '
        "message of several.\nCtrl-C ends an answer, Ctrl-D the conversation."
    )


def _file(chat: Chat, name: str) -> None:
    _check_named(name)
    for path in chat.attach(name):
        chat.say(f"{path} goes with the next message.")


def _image(chat: Chat, name: str) -> None:
    _check_named(name)
    for path in chat.attach_image(name):
        chat.say(f"{path} goes with the next message.")


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
    chat.say(f"{len(chat.conversation)} messages are in {path}.")


def _load(chat: Chat, path: str) -> None:
    _check_named(path)
    path = os.path.expanduser(path)
    chat.conversation.load(path)
    chat.say(f"{len(chat.conversation)} messages from {path}.")


def _check_named(path: str) -> None:
    """Raise ArgumentError if a path names what the chat was started with: reading standard input
    would take the messages that are still to come, or keep a terminal waiting."""
    if _files.is_handed_over(path):
        raise ArgumentError(
            f"{path} cannot be read during a conversation; name a file, or give it with -f at the "
            "start."
        )


def _draft(chat: Chat, who: str) -> None:
    if who:
        chat.model.redraft(who)
    chat.say(f"Drafting: {chat.model.drafter}")


def _color(chat: Chat, wish: str) -> None:
    if wish not in ("", "on", "off"):
        raise ArgumentError(f"/color takes on or off, not {wish!r}.")
    chat.colored = not chat.colored if not wish else wish == "on"
    chat.say(f"Colours: {'accepted drafts in green' if chat.colored else 'off'}")


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
        f"Its prompt: {last.prompt_tokens} tokens, {last.reused_tokens} of them known; the others "
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
        ("/file", "/read", "/glob"), "PATH", "put a file, or all that fit a pattern, into the "
        "next message", _file,
    ),
    Command(("/image",), "PATH", "show an image, or all that fit a pattern, with the next message",
            _image),
    Command(("/regen",), "", "answer the last message again", _regenerate),
    Command(("/clear", "/reset"), "", "forget all but the system message", _clear),
    Command(("/system",), "[TEXT]", "show or set the system message; none: there is none", _system),
    Command(("/save",), "PATH", "keep the conversation in a file", _save),
    Command(("/load",), "PATH", "go on with one from a file", _load),
    Command(
        ("/draft",), "[WHO]", "show or set who drafts: auto, ngram, mtp, none, or a smaller GGUF",
        _draft,
    ),
    Command(
        ("/color",), "[on|off]", "have accepted drafts in green, or not; alone: the other way",
        _color,
    ),
    Command(("/stats",), "", "what the last answer took, and all of them", _stats),
    Command(("/exit", "/quit", "/bye"), "", "end the conversation", _exit),
)  # fmt: skip
"""In the order of `/help`."""
