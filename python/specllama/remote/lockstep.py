"""One question and one answer for each round."""

from __future__ import annotations

import time

from specllama._core.plan import Phase, Turn
from specllama.remote.link import GoneError
from specllama.remote.party import Party
from specllama.remote.proposing import Draft
from specllama.remote.target import Exchange

_MOST_TRIES = 5


class Lockstep:
    """Drafts, asks, and hears what came of it. The planner that decides how much is drafted knows
    the time of the target's decodes, which the server tells, and of the way, which is measured:
    the longer the way, the longer the drafts.

    Args:
        party: Whose text it is, and who drafts.
        exchange: Who is asked.
    """

    def __init__(self, party: Party, exchange: Exchange) -> None:
        self._party = party
        self._exchange = exchange
        self._open = False
        self._phase: Phase | None = None
        self._offers: list[Draft] = []

    def round(self) -> None:
        """Go on by a round. Raises what `Link.post` does, but for GoneError: a generation that the
        server has forgotten is opened again."""
        for n_left in reversed(range(_MOST_TRIES)):
            try:
                self._ask()
                break
            except GoneError:
                self._forget()
                if n_left == 0:
                    raise

    def close(self) -> None:
        """Have the server forget it."""
        self._forget()

    def _forget(self) -> None:
        # Its place there is free at once; of what is over, the last answer is.
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
        told = self._exchange.open()
        self._open = True
        self._party.hear_first(told, time.monotonic() - began)

    def _verify(self) -> None:
        party = self._party
        turn, draft = self._draft()
        began = time.monotonic()
        told = self._exchange.verify(draft.tokens)
        took = time.monotonic() - began
        n_context = party.text.n_tokens
        tokens = party.hear(told, draft, took)
        n_drafted, seconds = party.decode_of(told)
        party.trip.observe(took - seconds)
        # Where others share its batches, a server may verify less of it.
        party.planner.observe_decode(n_drafted + 1, n_context, seconds)
        n_right = [one.agreed(tokens) for one in self._offers]
        longest = max(len(one.tokens) for one in self._offers)
        party.prospects.drafted(longest, max(n_right), len(tokens))
        turn.came(draft.agreed(tokens), n_right, len(tokens))
        party.planner.learn(turn)

    def _draft(self) -> tuple[Turn, Draft]:
        """Return what to verify, and the round as the planner knows it."""
        party = self._party
        began = time.monotonic()
        planner, text = party.planner, party.text
        if self._phase is None:
            temperature = text.options.sampling.temperature
            self._phase = planner.begin(temperature, len(text.prompt))
        room = max(min(party.longest, text.n_left - 1), 0)
        if party.spec_length is not None:
            room = min(room, party.spec_length)
        turn = Turn(self._phase, text.n_tokens, max_draft=room, overhead=party.trip.seconds)
        draft = party.proposer.draft(room) if party.proposer is not None else Draft()
        turn.offer(draft.evidence)
        self._offers = [draft]
        planned = party.spec_length is None
        if planned:
            planner.choose([turn])
        if party.draft_model is not None:
            chosen = draft.first(turn.choice.n_draft) if planned else Draft()
            longer = self._with_model(turn, chosen, room)
            turn.offer(longer.evidence, n_known=len(chosen.tokens))
            self._offers.append(longer)
            if planned:
                planner.choose([turn])
        if planned:
            offer = turn.choice.offer
            chosen = self._offers[offer].first(turn.choice.n_draft) if offer >= 0 else Draft()
        else:
            chosen = next((one for one in reversed(self._offers) if one.tokens), Draft())
        party.tally.draft_seconds += time.monotonic() - began
        return turn, chosen

    def _with_model(self, turn: Turn, draft: Draft, room: int) -> Draft:
        """Return a draft with what the draft model adds to it."""
        party = self._party
        longer = Draft([*draft.tokens], [*draft.evidence])
        planned = party.spec_length is None
        began = last = time.monotonic()

        def goes_on() -> bool:
            spent = time.monotonic() - began
            return not planned or party.planner.goes_on(turn, longer.evidence, spent)

        n = room - len(draft.tokens)
        if n < 1 or not goes_on():
            return longer
        for drafted in party.model_tokens(longer.tokens, n):
            if drafted is None:
                continue
            now = time.monotonic()
            if len(longer.tokens) > len(draft.tokens):  # the first took in what it did not know
                party.planner.observe_draft_decode(1, party.text.n_tokens, now - last)
            last = now
            longer.add(*drafted)
            if not goes_on():
                break
        return longer
