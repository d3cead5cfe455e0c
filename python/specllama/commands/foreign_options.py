"""Options of other programs, and what does the same here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence

_BY_ITSELF = "what it asks for is always so; leave it out"
_LENGTH = "say --spec-length N, the most tokens drafted; the default drafts what pays"
_PLANNED = "what is drafted is decided round by round; leave it out, or see --spec-length"
_KV = "say -kv TYPE, for keys and values alike"
_THINK = """say --chat-template-kwargs '{"enable_thinking": false}'"""

_FOREIGN_OPTIONS = {
    **dict.fromkeys(("-ctk", "-ctv", "--cache-type-k", "--cache-type-v"), _KV),
    **dict.fromkeys(
        ("--draft-max", "--draft-n", "--spec-draft-n-max", "--num-draft-tokens"), _LENGTH
    ),
    **dict.fromkeys(
        ("--draft-min", "--draft-p-min", "--spec-type", "--spec-draft-n-min"), _PLANNED
    ),
    **dict.fromkeys(
        ("--no-escape", "-cb", "--cont-batching", "--no-context-shift"),
        _BY_ITSELF,
    ),
    "--jinja": "chat templates are always Jinja's; leave it out",
    **dict.fromkeys(("--metrics", "--slots"), "the server always has /metrics; leave it out"),
    **dict.fromkeys(
        ("-cnv", "--conversation", "-no-cnv", "-st", "--single-turn"),
        "spec-cli continues a text, specllama chat converses; leave it out",
    ),
    **dict.fromkeys(("-rea", "--reasoning"), _THINK),
    **dict.fromkeys(("-ub", "--ubatch-size"), "there is one size of batches; leave it out"),
    **dict.fromkeys(("-hff", "--hf-file"), "say -hf user/repo/FILE.gguf"),
    **dict.fromkeys(("-mg", "-ot"), "there is nothing like it here; leave it out"),
    "--mlock": "say --load-mode mlock",
    "--no-mmap": "say --load-mode none",
    "--rope-freq-scale": "say --rope-scale N, with 1 / N",
    **dict.fromkeys(("-cmoe", "--cpu-moe"), "say -ncmoe N, with the number of the model's layers"),
    **dict.fromkeys(("-fit", "--fit"), "layers that do not fit stay in main memory; leave it out"),
    **dict.fromkeys(("-mm", "--mmproj"), "models read texts only here"),
    **dict.fromkeys(("--embedding", "--embeddings", "--reranking"), "there are no embeddings here"),
    "--no-webui": "the page at / costs nothing; leave it out",
    "--cors-origins": "say --cors-origin ORIGIN, once for each",
    "--chat-template": "say --chat-template-file FILE",
}  # fmt: skip
"""Options of llama.cpp's programs and of mlx-lm that do not exist here."""


_OPTION = re.compile(r"(?<!\S)--?[a-z][a-z-]*")


def foreign_option(name: str, known: Collection[str]) -> str | None:
    """Return advice about an option of other programs, for a command with the options `known`. None
    if there is no advice, or if it would name an option that this command does not have."""
    said = _FOREIGN_OPTIONS.get(name)
    if said is None or not all(one in known for one in _OPTION.findall(said)):
        return None
    return f"{name} is no option here: {said}"


def advice(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Return advice about arguments `unknown` to a command with the options `known`: what does the
    same here, if anything, or what may have been meant."""
    option = next((one for one in unknown if one.startswith("-")), unknown[0])
    name = option.partition("=")[0]
    if said := foreign_option(name, known):
        return said
    if name in known:  # a short option
        return f"the value of {name} stands behind a blank, not behind ="
    if not option.startswith("-"):
        if option.endswith(".gguf") and "-m" in known:
            return f"what is {option} for? A model is named with -m {option}"
        return f"what is {option!r:.80} for?"
    is_begun = name.startswith("--") and len(name) > len("--")
    begun = [one for one in known if is_begun and one.startswith(name)]
    alike = begun or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    meant = f"; did you mean {alike[0]}?" if alike else ""
    return f"there is no option {name}{meant}"
