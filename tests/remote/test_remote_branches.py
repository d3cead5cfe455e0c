"""A target on a server that verifies drafts with branches gives the same tokens, whichever branch
is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from drafters import Branching
from meddling import every
from prompts import PROMPTS
from serving import Server, serve
from session_options import EXACT, EXACT_HERE
from slow_link import slow_link
from specllama import ArgumentError, Generation, SpecSession
from specllama.session import BUNDLED_DRAFT

MODULE = PROMPTS["module"]
N = 40
PLACES = ["main path", "branch", "random", "nowhere"]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 1.0, "seed": 5, "logprobs": 1},
}
TREES: dict[str, Any] = {"spec_length": 4, "spec_tree": 3}


@pytest.fixture(scope="module", params=["fixed", "planned"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with the bundled model that verifies branches, with a fixed or a planned length."""
    length = 4 if request.param == "fixed" else "auto"
    options: Any = EXACT | {"exact": EXACT_HERE, "verifies": True, "spec_tree": 3}
    options["spec_length"] = length
    with SpecSession(None, None, **options) as session, serve(session) as running:
        yield running


@pytest.fixture(scope="module")
def chains() -> Iterator[Server]:
    """The same server without branches."""
    options: Any = EXACT | {"exact": EXACT_HERE, "verifies": True, "spec_length": 4}
    with SpecSession(None, None, **options) as session, serve(session) as running:
        yield running


@pytest.fixture(scope="module")
def local() -> Iterator[SpecSession]:
    """A local session with the same model, without drafts."""
    with SpecSession(draft=None, **EXACT, exact=EXACT_HERE) as session:
        yield session


def same(found: Generation, expected: Generation) -> None:
    assert (found.tokens, found.text) == (expected.tokens, expected.text)
    assert found.finish_reason == expected.finish_reason
    assert found.stop_string == expected.stop_string
    ours = [(one.token, one.logprob, one.top) for one in found.logprobs]
    assert ours == [(one.token, one.logprob, one.top) for one in expected.logprobs]


def n_aside(generation: Generation) -> int:
    """Return how many tokens of side branches were accepted."""
    return sum(generation.stats.accepted_by_rank[1:])


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_trees_verified_by_a_server_change_no_token(
    server: Server, local: SpecSession, place: str, options: dict[str, Any]
) -> None:
    drafter = Branching(local.n_vocab, place)
    found_aside = 0
    with SpecSession(target=server.url, draft=drafter, **TREES) as session:
        for name in ("module", "json", "emoji"):
            expected = local.generate(PROMPTS[name], max_tokens=N, **options)
            drafter.coming = expected.tokens
            found = session.generate(PROMPTS[name], max_tokens=N, **options)
            same(found, expected)
            assert found.stats.drafter_errors == 0
            assert sum(found.stats.drafted_by_rank) == found.stats.drafted
            assert sum(found.stats.drafted_by_position) == found.stats.drafted
            assert sum(found.stats.accepted_by_rank) == found.stats.accepted
            found_aside += n_aside(found)
            # Accepted branches save rounds.
            if place == "branch":
                assert found.stats.rounds <= 2 + N // 4
    assert (found_aside > 5) == (place in ("branch", "random"))


@pytest.mark.parametrize("place", PLACES)
def test_planned_trees_verified_by_a_server_change_no_token(
    server: Server, local: SpecSession, place: str
) -> None:
    """The drafts depend on the clock, but the tokens do not."""
    drafter = Branching(local.n_vocab, place)
    options: dict[str, Any] = {"max_tokens": 80, "temperature": 1.0, "seed": 3}
    expected = local.generate(MODULE, **options)
    drafter.coming = expected.tokens
    n_accepted = 0
    with SpecSession(target=server.url, draft=drafter, spec_tree=3) as session:
        for _ in range(2):
            found = session.generate(MODULE, **options)
            same(found, expected)
            n_accepted += found.stats.accepted
    assert (n_accepted > 0) == (place != "nowhere")


def test_a_server_without_branches_verifies_the_main_path(
    chains: Server, local: SpecSession
) -> None:
    expected = local.generate(MODULE, max_tokens=N)
    for place in ("branch", "main path"):
        drafter = Branching(local.n_vocab, place)
        drafter.coming = expected.tokens
        with SpecSession(target=chains.url, draft=drafter, **TREES) as session:
            assert session._backend.max_candidates == 1
            found = session.generate(MODULE, max_tokens=N)
        same(found, expected)
        assert len(found.stats.drafted_by_rank) == 1
        assert (found.stats.accepted > 20) == (place == "main path")


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_branches_of_a_draft_model_are_accepted(
    server: Server, local: SpecSession, temperature: float
) -> None:
    aside = 0
    with SpecSession(target=server.url, draft=BUNDLED_DRAFT, n_threads=1, **TREES) as session:
        for name in ("module", "counting", "imports"):
            options: Any = {"max_tokens": 60, "temperature": temperature, "seed": 3}
            found = session.generate(PROMPTS[name], **options)
            same(found, local.generate(PROMPTS[name], **options))
            aside += n_aside(found)
    assert aside > 5


def test_branches_equal_those_of_a_local_session(server: Server) -> None:
    """At temperature 0, except for near-ties: the draft models' KV memories have different
    types."""
    here: Any = EXACT | TREES | {"exact": EXACT_HERE, "cascade": False}
    with (
        SpecSession(None, BUNDLED_DRAFT, **here) as drafting,
        SpecSession(
            target=server.url, draft=BUNDLED_DRAFT, cascade=False,
            n_threads=1, **TREES,
        ) as session,
    ):  # fmt: skip
        aside_there = aside_here = 0
        for name in ("module", "counting"):
            found = session.generate(PROMPTS[name], max_tokens=60)
            expected = drafting.generate(PROMPTS[name], max_tokens=60)
            same(found, expected)
            assert abs(found.stats.rounds - expected.stats.rounds) <= 1
            aside_there, aside_here = aside_there + n_aside(found), aside_here + n_aside(expected)
        assert aside_there > 2
        assert abs(aside_there - aside_here) <= 2


def test_a_branch_from_a_second_match_is_accepted_by_a_server(
    server: Server, local: SpecSession
) -> None:
    """Three pieces have the same beginning. The first is right, but the copy comes from the
    last."""
    plain = local.generate(MODULE, max_tokens=120)
    reference: list[int] = []
    for start in range(0, 120, 8):
        right = plain.tokens[start : start + 12]
        reference += right + 2 * [*right[:7], *((token + 1) % 4096 for token in right[7:])]
    for spec_tree in (1, 2):
        with SpecSession(target=server.url, spec_length=4, spec_tree=spec_tree) as session:
            found = session.generate(MODULE, max_tokens=120, reference=reference)
        same(found, plain)
        assert (n_aside(found) > 5) == (spec_tree == 2)


class Breaking(Branching):
    """Runs an action during some of its calls."""

    def __init__(self, n_vocab: int, place: str, acts: dict[int, Any]) -> None:
        super().__init__(n_vocab, place)
        self.acts = acts
        self.n_asked = 0

    def propose(self, sequence: int, tokens: Any, max_tokens: int) -> list[list[int]]:
        self.n_asked += 1
        self.acts.get(self.n_asked, lambda: None)()
        return super().propose(sequence, tokens, max_tokens)


@pytest.mark.parametrize("place", ["branch", "random"])
def test_broken_connections_repeat_rounds_with_their_branches(
    server: Server, local: SpecSession, place: str
) -> None:
    """Rounds are repeated with their branches, and generations are opened again."""
    options: dict[str, Any] = {"max_tokens": 60, "temperature": 1.0, "seed": 11, "logprobs": 1}
    expected = local.generate(MODULE, **options)
    with slow_link(server.url) as link:
        drafter = Breaking(local.n_vocab, place, every(3, link.break_all))
        drafter.coming = expected.tokens
        with SpecSession(target=link.url, draft=drafter, **TREES) as session:
            link.cut(2500)
            same(session.generate(MODULE, **options), expected)
            assert link.n_connections > 1


def test_an_abandoned_tree_leaves_nothing_on_the_server(server: Server, local: SpecSession) -> None:
    """Its reader or an interrupt in the drafter abandons it."""
    expected = local.generate(MODULE, max_tokens=60)

    def interrupt() -> None:
        raise KeyboardInterrupt

    drafter = Breaking(local.n_vocab, "random", {4: interrupt})
    drafter.coming = expected.tokens
    with SpecSession(target=server.url, draft=drafter, **TREES) as session:
        with suppress(KeyboardInterrupt):
            while True:
                session.generate(MODULE, max_tokens=60)
        same(session.generate(MODULE, max_tokens=60), expected)
        for n in (1, 3, 7):
            with session.stream(MODULE, max_tokens=60) as stream:
                assert [next(stream).token for _ in range(n)] == expected.tokens[:n]
            same(session.generate(MODULE, max_tokens=60), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spec_tree": 0}, "spec_tree must be"),
        ({"spec_tree": 9}, "spec_tree must be"),
        ({"spec_tree": "on"}, "spec_tree must be"),
        ({"spec_tree": 4, "spec_length": 17}, "spec_length times spec_tree must be 64 at most"),
    ],
)
def test_bad_tree_options_with_a_served_target_are_refused(
    chains: Server, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        SpecSession(target=chains.url, **options)
