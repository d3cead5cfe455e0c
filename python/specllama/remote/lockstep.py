"""Generations in lockstep: one request and one answer for each round."""

from __future__ import annotations

import time

from specllama._core.plan import PlannedRound, TextRegime
from specllama.remote.draft import Draft
from specllama.remote.link import GoneError
from specllama.remote.party import Party
from specllama.remote.proposing import add_guess
from specllama.remote.target import Exchange
from specllama.remote.tree import Tree

_MOST_TRIES = 5


class Lockstep:
    """Drafts, has the draft verified, and takes in the answer. The planner that decides how much is
    drafted knows the time of the target's decodes, which the server reports, and the time of the
    round trip, which is measured: the longer the trip, the longer the drafts.

    Args:
        party: The text and its drafters.
        exchange: Asks the target.
    """

    def __init__(self, party: Party, exchange: Exchange) -> None:
        self._party = party
        self._exchange = exchange
        self._open = False
        self._phase: TextRegime | None = None
        self._n_decoded = 0  # tokens of the text decoded by the draft model
        self._drafts: list[Draft] = []
        self._trees: list[Tree] = []
        self._n_again = 0  # accepted tokens of a branch, which the next decode repeats

    def round(self) -> None:
        """Run one round. Raises what `Link.post` raises. A generation that the server has forgotten
        (GoneError) is opened again; the error is raised only after several tries."""
        for n_left in reversed(range(_MOST_TRIES)):
            try:
                self._ask()
                break
            except GoneError:
                self._forget()
                if n_left == 0:
                    raise

    def close(self) -> None:
        """Have the server forget the generation."""
        self._forget()

    def _forget(self) -> None:
        # This frees its place there at once. A finished one has none, and its last answer may stay.
        was_open, self._open = self._open, False
        if was_open and not (self._party.text.done and self._party.text.finish_reason):
            self._exchange.close()

    def _ask(self) -> None:
        if self._open:
            self._verify()
        else:
            self._begin()

    def _begin(self) -> None:
        began = time.monotonic()
        answer = self._exchange.open()
        self._open = True
        self._n_again = 0
        self._party.hear_first(answer, time.monotonic() - began)

    def _verify(self) -> None:
        party = self._party
        turn, draft = self._draft()
        began = time.monotonic()
        answer = self._exchange.verify(draft)
        took = time.monotonic() - began
        n_context = party.text.n_tokens
        tokens = party.hear(answer, draft, took)
        party.trip.observe(took - answer.seconds)
        # Fewer may be verified than were sent: a server shares its batches among requests.
        n_decoded = answer.n_drafted + 1 + self._n_again
        party.planner.observe_decode(n_decoded, n_context, answer.seconds)
        for i, tree in enumerate(self._trees):
            for side, right in tree.judged(tokens):
                turn.on_alternative(i, side, right)
        verified = Tree(draft, guesses=party.guesses)
        path = verified.path(tokens)
        self._n_again = verified.n_aside(path)
        n_right = [one.agreed(tokens) for one in self._drafts]
        turn.on_result(len(path), n_right, len(tokens), self._n_again)
        party.planner.learn(turn)

    def _draft(self) -> tuple[PlannedRound, Draft]:
        """Return the draft to verify, and the planner's record of the round."""
        party = self._party
        began = time.monotonic()
        room = max(min(party.longest, party.text.n_left - 1), 0)
        if party.spec_length is not None:
            room = min(room, party.spec_length)
        draft = party.proposer.draft(room) if party.proposer is not None else Draft()
        self._drafts = [draft]
        n_rest = 0
        if party.draft_model is not None:
            turn = self._turn(room)
            turn.add(draft.evidence)
            if party.spec_length is None:
                party.planner.choose([turn])
            own = self._by_model(turn, room)
            if own.tokens:
                n_rest = own.add_rest(draft)
            self._drafts.append(own)
        turn, chosen = self._choose(room, n_rest)
        party.tally.draft_seconds += time.monotonic() - began
        return turn, chosen

    def _turn(self, room: int) -> PlannedRound:
        party = self._party
        text = party.text
        if self._phase is None:
            temperature = text.options.sampling.temperature
            self._phase = party.planner.begin(temperature, len(text.prompt))
            if party.draft_model is not None:
                self._n_decoded = party.draft_model.n_decoded(text.prompt)
        return PlannedRound(
            self._phase,
            text.n_tokens,
            n_pending=1 + self._n_again,
            max_draft=room,
            n_unprocessed=max(text.n_tokens - 1 - self._n_decoded, 0),
            max_rows=party.most_nodes,
            n_left=text.n_left,
            overhead=party.trip.seconds,
        )

    def _choose(self, room: int, n_rest: int) -> tuple[PlannedRound, Draft]:
        """Return the part to verify of the drafts at hand, each merged with the others' branches.
        n_rest: number of the last draft's tokens that are the first draft's, after the draft
        model's own."""
        party = self._party
        drafts = self._drafts
        turn = self._turn(room)
        others = drafts if party.guesses > 1 else []
        self._trees = [Tree(one, others, guesses=party.guesses) for one in drafts]
        for i, (one, tree) in enumerate(zip(drafts, self._trees, strict=True)):
            if i == 0:
                turn.add(one.evidence, alternatives=tree.sides)
            else:  # the draft model's, which knows more of its tokens than a copy does
                required = bool(one.tokens)
                turn.add(one.evidence, n_rest=n_rest, required=required, alternatives=tree.sides)
        if party.spec_length is None:
            party.planner.choose([turn])
            at = turn.choice.candidate
            rows = turn.rows if party.guesses > 1 else range(turn.choice.n_draft)
        else:
            at = next((i for i in reversed(range(len(drafts))) if drafts[i].tokens), -1)
            rows = range(min(len(self._trees[at].tokens), party.most_nodes))
        return turn, self._trees[at].draft(rows) if at >= 0 else Draft()

    def _by_model(self, turn: PlannedRound, room: int) -> Draft:
        """Return a draft of the draft model's."""
        party = self._party
        draft = Draft()
        planned = party.spec_length is None
        began = last = time.monotonic()

        def goes_on() -> bool:
            spent = time.monotonic() - began
            return not planned or party.planner.should_continue(turn, draft.evidence, spent)

        if room < 1 or not goes_on():
            return draft
        for drafted in party.model_tokens([], room):
            if drafted is None:
                continue
            now = time.monotonic()
            if draft.tokens:  # the first step also took in text
                party.planner.observe_drafting(1, 1, 0, party.text.n_tokens, now - last)
            last = now
            add_guess(draft, drafted)
            self._n_decoded = party.text.n_tokens + len(draft.tokens) - 1
            if not goes_on():
                break
        return draft
