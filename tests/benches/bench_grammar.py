"""What a grammar's drafts are worth: the extractions among the answered workloads, each with a JSON
schema.

    python tests/benches/bench_grammar.py -m target.gguf -md draft.gguf

For each, tokens per second behind the prompt, tokens per round, microseconds of drafting per round
(without the draft model's), and what was drafted and accepted by grammar.
"""

from __future__ import annotations

import argparse
from typing import Any

from specllama import SpecSession
from specllama.workloads.answered import load_answered

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}


def record(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all these properties, in this order."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument(
        "-md", "--draft", default="ngram", help="a draft model; default: %(default)s"
    )
    parser.add_argument("-n", "--max-tokens", type=int, default=256)
    arguments = parser.parse_args()
    tokens = seconds = 0.0
    with SpecSession(arguments.model, arguments.draft, n_ctx=4096) as session:
        for conversation in load_answered("extract"):
            schema = SCHEMAS[conversation.name]
            generation = session.chat(
                conversation.messages, json_schema=schema, max_tokens=arguments.max_tokens
            )
            stats = generation.stats
            tokens += stats.generated_tokens
            seconds += stats.generated_tokens / stats.tokens_per_second
            print(
                f"{conversation.name:24}{stats.generated_tokens:5} tokens"
                f"{stats.tokens_per_second:8.2f}/s{stats.tokens_per_round:6.2f}/round"
                f"{1e6 * stats.seconds.draft / stats.rounds:8.0f} us"
                f"  {stats.by_drafter.get('grammar')}"
            )
    print(f"{'all':24}{tokens:5.0f} tokens{tokens / seconds:8.2f}/s")


if __name__ == "__main__":
    main()
