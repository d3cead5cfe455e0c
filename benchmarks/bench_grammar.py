"""The gain of a grammar's drafts: the workload `extract`, each text with a JSON schema.

    python benchmarks/bench_grammar.py -m target.gguf -md draft.gguf
    python benchmarks/bench_grammar.py -m target.gguf --left

In turns, each text is generated with its schema, and replayed without a schema with the same
drafters and plainly. The time of choosing tokens with the grammar is used for all three. For each
text it prints medians of the turns: tokens per second after the prompt with plain decoding, and the
speeds without and with the grammar's drafts as multiples of it. It also prints, for the last turn,
tokens per round and microseconds of drafting per round, without and with these drafts, and the
tokens drafted and accepted by the grammar. --left: instead, the number of tokens of the vocabulary
that the grammar allows at each position.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import llama_cpp
from llguidance import LLMatcher, LLTokenizer
from llguidance.llamacpp import lltokenizer_from_vocab
from specllama import SpecSession
from specllama._core import Stats
from specllama.requests.grammar import read_schema
from specllama.workloads.answered import Dialogue, load_answered

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with all these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def records(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array of such objects."""
    return {"type": "array", "items": record(**properties)}


SCHEMAS: dict[str, dict[str, Any]] = {
    "orders from a mailbox": records(
        customer=TEXT,
        item=TEXT,
        quantity={"type": "integer"},
        deliver_by=MAYBE,
        express={"type": "boolean"},
    ),
    "festival programme": records(
        start={"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}$"},
        end=MAYBE,
        stage=TEXT,
        artist=TEXT,
        genre=TEXT,
    ),
    "server log errors": records(
        time=TEXT,
        level={"enum": ["ERROR", "WARNING"]},
        service=TEXT,
        message=TEXT,
        request_id=MAYBE,
    ),
    "flats to let": records(
        title=TEXT,
        rooms=NUMBER,
        square_metres=NUMBER,
        cold_rent=NUMBER,
        extra_costs={"type": ["number", "null"]},
        floor={"type": "integer"},
        balcony={"type": "boolean"},
        available=TEXT,
    ),
    "invoice lines": record(
        number=TEXT,
        date=TEXT,
        supplier=TEXT,
        lines=records(
            position=NUMBER, description=TEXT, quantity=NUMBER, unit_price=NUMBER, amount=NUMBER
        ),
        total=NUMBER,
    ),
    "people in a newsletter": records(
        name=TEXT,
        role=TEXT,
        department=TEXT,
        event={"enum": ["joined", "left", "promoted", "anniversary", "other"]},
    ),
}
"""By the name of the conversation."""


def left(tokenizer: LLTokenizer, grammar: str, tokens: Sequence[int]) -> list[int]:
    """Return [i]: the number of tokens that the grammar allows at the position of token i."""
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_json_schema(grammar))
    counts = []
    for token in tokens:
        counts.append(sum(bias > 0 for bias in matcher.compute_logit_bias()))
        if not matcher.consume_token(token):
            break
    return counts


def count_left(arguments: argparse.Namespace, conversations: list[Dialogue]) -> None:
    """Print how often only one token is allowed, and the lengths of runs of such positions."""
    vocabulary = llama_cpp.Llama(arguments.model, vocab_only=True, verbose=False)
    tokenizer = lltokenizer_from_vocab(llama_cpp.llama_model_get_vocab(vocabulary.model))
    everywhere: list[int] = []
    runs: Counter[int] = Counter()
    with SpecSession(arguments.model, arguments.draft, n_ctx=4096) as session:
        for one in conversations:
            schema = SCHEMAS[one.name]
            text = session.chat(one.messages, json_schema=schema, max_tokens=arguments.max_tokens)
            counts = left(tokenizer, read_schema(schema).text, text.tokens)
            everywhere += counts
            runs.update(len([*run]) for n, run in groupby(counts) if n == 1)
            print(f"{one.name:24}{len(counts):5} places{counts.count(1):5} of one token")
    share = everywhere.count(1) / len(everywhere)
    print(f"{'all':24}{len(everywhere):5} places, {share:.2%} of one token; in a row: {dict(runs)}")


class Runs:
    """The statistics of a text with one contestant, turn by turn."""

    def __init__(self) -> None:
        self.runs: list[Stats] = []

    def median(self, of: Callable[[Stats], float]) -> float:
        """Return a value per token, the median of all turns."""
        return statistics.median(of(stats) / stats.generated_tokens for stats in self.runs)

    def choosing(self) -> float:
        return self.median(lambda stats: stats.seconds.choose)

    def rest(self) -> float:
        return self.median(
            lambda stats: stats.generated_tokens / stats.tokens_per_second - stats.seconds.choose
        )


def compare(arguments: argparse.Namespace, conversations: list[Dialogue]) -> None:
    contestants = {"plain": None, "without": arguments.draft, "with": arguments.draft}
    sessions = {
        name: SpecSession(arguments.model, draft, n_ctx=4096) for name, draft in contestants.items()
    }
    runs = {one.name: {name: Runs() for name in sessions} for one in conversations}
    texts: dict[str, list[int]] = {}
    folder = Path(tempfile.mkdtemp())  # saved states of decoded prompts
    for turn in range(arguments.repeat + 1):
        for i, one in enumerate(conversations):
            prompt = sessions["with"].render_chat(one.messages)
            if turn == 0:
                sessions["with"].generate(prompt, max_tokens=1)
                sessions["with"].save_state(folder / one.name)
            order = [*sessions] if (turn + i) % 2 else [*sessions][::-1]
            for name in ["with"] if turn == 0 else order:
                sessions[name].load_state(folder / one.name)
                if name == "with":
                    done = sessions[name].generate(
                        prompt, json_schema=SCHEMAS[one.name], max_tokens=arguments.max_tokens
                    )
                    texts.setdefault(one.name, done.tokens)
                else:
                    done = sessions[name].replay(prompt, texts[one.name])
                if turn > 0:
                    runs[one.name][name].runs.append(done.stats)
    seconds = {
        text: {name: one.rest() + of["with"].choosing() for name, one in of.items()}
        for text, of in runs.items()
    }
    for text, of in runs.items():
        stats = of["with"].runs[-1]
        print(
            f"{text:24}{stats.generated_tokens:4} tokens{speeds(seconds[text])}"
            f"  {of['without'].runs[-1].tokens_per_round:.2f} and"
            f" {stats.tokens_per_round:.2f} a round"
            f"{drafting(of['without'].runs[-1]):6.0f} and{drafting(stats):4.0f} us"
            f"  {stats.by_drafter.get('grammar')}"
        )
    mean = {
        name: statistics.geometric_mean(of[name] for of in seconds.values()) for name in sessions
    }
    print(f"{'geometric mean':35}{speeds(mean)}")
    points = enumerate(stats.decode_seconds[:16], 1)
    print("ms of a decode:", ", ".join(f"{n}: {1e3 * v:.1f}" for n, v in points if v > 0))
    for session in sessions.values():
        session.close()
    shutil.rmtree(folder)


def drafting(stats: Stats) -> float:
    """Return the microseconds of drafting per round."""
    return 1e6 * stats.seconds.draft / stats.rounds


def speeds(seconds: dict[str, float]) -> str:
    plain, without, with_ = (seconds[name] for name in ("plain", "without", "with"))
    return (
        f"  plain {1 / plain:6.2f}/s, without {plain / without:.2f}, with {plain / with_:.2f}:"
        f" {without / with_:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument(
        "-md", "--draft", default="ngram", help="a draft model; default: %(default)s"
    )
    parser.add_argument("-n", "--max-tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=3, help="turns (%(default)s)")
    parser.add_argument("--left", action="store_true", help="count the allowed tokens")
    arguments = parser.parse_args()
    conversations = load_answered("extract")
    if arguments.left:
        count_left(arguments, conversations)
    else:
        compare(arguments, conversations)


if __name__ == "__main__":
    main()
