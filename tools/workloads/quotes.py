"""quote: a question about a document is answered with passages from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from sources import read_topic
from specllama.workloads import Replay


class Passage(NamedTuple):
    """A passage of the document, given by its beginning and its end."""

    first: str
    last: str


P = Passage

# Chapter of the language reference, a question about it, and the answer: own words and passages.
ANSWERS: list[tuple[str, str, list[str | Passage]]] = [
    (
        "exceptions",
        "Can a handler fix what went wrong and let the failed operation go on?",
        [
            "Not in Python. Under the heading of the termination model the text says:",
            P("an exception handler can find out", "from the top)."),
            "So a handler can only carry on further out. If there is none, the program ends:",
            P("When an exception is not handled at all", '"SystemExit".'),
            "In tests, compare the class and not the message, as handlers do:",
            P('The "except" clause is selected', "non-virtual base class* thereof."),
        ],
    ),
    (
        "class",
        "In what namespace does the body of a class run, and what becomes of it?",
        [
            "In one that is made for it:",
            P("suite is then executed", "original global namespace."),
            "Afterwards the frame goes and the names stay:",
            P("suite finishes execution", "for the attribute dictionary."),
            "You may also count on the order of definitions, with a limit:",
            P("The order in which attributes are defined", "using the definition syntax."),
        ],
    ),
    (
        "with",
        'Is "__exit__()" called if the assignment after "as" fails?',
        [
            'Yes. As soon as "__enter__()" has returned, the exit is certain; step 5 has a note:',
            P('The "with" statement guarantees', "See step 7 below."),
            "What the method returns then decides whether you see the exception:",
            P("If the suite was exited due to an exception", '"with"\n   statement.'),
            "Several managers in one statement follow the same rule, one inside the other:",
            P("With more than one item", "were nested:"),
        ],
    ),
    (
        "dict",
        "What happens to duplicate keys in a dictionary display?",
        [
            "The last one wins, silently. For plain items the chapter puts it like this:",
            P("This means that you can specify", "the last one given."),
            "Unpacked mappings are no exception:",
            P("Later values replace values", "earlier dictionary unpackings."),
            "No error is to be expected, as the paragraph about key types adds:",
            P("Clashes between duplicate keys", "key value prevails."),
        ],
    ),
    (
        "subscriptions",
        'Why does x[-1] work for a list, and would it work for my own class with "__getitem__()"?',
        [
            "Negative indices are nothing that the language itself knows about:",
            P("The formal syntax makes no special", "the last item of \"x\"."),
            "For your own class it depends on what you write:",
            P("Since the support for negative indices", "add that support."),
            "Should you call it with several indices, be prepared for a tuple:",
            P("If the expression list contains at least one comma", "expression list."),
        ],
    ),
    (
        "in",
        'How does "in" find out whether my object contains something?',
        [
            "It tries three protocols in turn. The first is a method made for the purpose:",
            P('For user-defined classes which define the "__contains__()"', '"False" otherwise.'),
            "Failing that, it iterates:",
            P("For user-defined classes which do not define", 'iterating over "y".'),
            "And at last it counts up indices, as old classes need it:",
            P("Lastly, the old-style iteration protocol", '"IndexError" exception.'),
            "The negated operator asks the same and turns the answer around.",
        ],
    ),
    (
        "objects",
        "Can the value of a tuple change? And may I rely on objects being freed at once?",
        [
            "In a way it can. Compare these two statements:",
            P("The value of an immutable container object", "it contains cannot be changed."),
            P("So, if an immutable container", "that mutable object is changed."),
            "As to the second question, no. Python leaves the moment open:",
            P("Objects are never explicitly destroyed", "they may be garbage-collected."),
            "For files and the like there is a recommendation:",
            P("Programs are strongly recommended", "close such objects."),
        ],
    ),
    (
        "global",
        'Does a "global" statement reach into code that I run by "exec()"?',
        [
            "It does not, in neither direction. The note for programmers is explicit:",
            P('In particular, a "global" statement contained', "containing the function call."),
            "The reason is given a sentence earlier:",
            P('"global" is a directive to the parser.', '"global" statement.'),
            "Within one block the order matters as well:",
            P('Names listed in a "global" statement must not be used', 'that "global" statement.'),
        ],
    ),
]  # fmt: skip


_AFTER_TEXT = ("See also:", "-[ Footnotes ]-")


def make() -> Iterator[Replay]:
    for topic, question, parts in ANSWERS:
        text = takewhile(lambda paragraph: paragraph not in _AFTER_TEXT, read_topic(topic))
        document = "\n\n".join(text)
        yield Replay(
            prompt=f"{document}\n\n---\n\nQuestion: {question}\n\n"
            "Answer, quoting the text above:\n\n",
            reference="\n\n".join(_block(part, document) for part in parts) + "\n",
            name=topic,
            workload="quote",
        )


def _block(part: str | Passage, document: str) -> str:
    if isinstance(part, str):
        return part
    start = document.index(part.first)
    end = document.index(part.last, start) + len(part.last)
    return "\n".join(f"> {line.strip()}" for line in document[start:end].split("\n"))
