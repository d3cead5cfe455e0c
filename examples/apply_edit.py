"""Let a model rewrite a file. Unchanged parts are drafted from the old file.

    python examples/apply_edit.py model.gguf file.py "Rename the function load to read." > new.py

The model needs a chat template. The text is the same without drafts, only slower: try --plain.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from specllama import Generation, SpecllamaError, SpecSession

ORDER = (
    "Here is a file:\n```\n{file}```\n{instruction} "
    "Answer with the whole changed file between ``` and ```, and nothing else."
)


def rewrite(model: str, file: str, instruction: str, plain: bool) -> Generation:
    """Return the answer: the changed file, between fences."""
    message = {"role": "user", "content": ORDER.format(file=file, instruction=instruction)}
    with SpecSession(model, draft=None if plain else "auto") as session:
        # Twice the file: a longer answer has gone wrong.
        most = 2 * len(session.tokenize(file)) + 64
        return session.chat([message], max_tokens=most, reference=file)


def unfenced(answer: str) -> str:
    """Return the text between the fences of an answer, or all of it if there are none."""
    _, fence, rest = answer.partition("```")
    if not fence:
        return answer
    return rest.partition("\n")[2].rpartition("```")[0] or rest.partition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description="Let a model rewrite a file.")
    parser.add_argument("model", help="GGUF file with a chat template")
    parser.add_argument("file", type=Path, help="file to rewrite; it is not modified")
    parser.add_argument("instruction", help="instruction for the change")
    parser.add_argument("--plain", action="store_true", help="disable drafts")
    given = parser.parse_args()
    try:
        answer = rewrite(given.model, given.file.read_text(), given.instruction, given.plain)
    except (SpecllamaError, OSError, UnicodeError) as error:
        sys.exit(f"apply_edit.py: {error}")
    print(unfenced(answer.text), end="")
    stats = answer.stats
    print(
        f"generated {stats.generated_tokens}, drafted {stats.drafted}, accepted {stats.accepted}, "
        f"seconds {stats.seconds.total:.1f}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
