"""The members of a JSON object in their order, as a grammar."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def members(pairs: Sequence[tuple[str, bool]], named: Callable[[str], str]) -> str:
    """Return GBNF for the members of an object with commas between them, and none elsewhere.

    Each comma stands before what follows it, whichever member that is. So a reader that has come
    to the end of a value follows one way on, not one for each member that may be next.

    Args:
        pairs: GBNF of each member, without alternatives, and whether the member is required.
        named: Makes a rule of a piece of GBNF, and returns the new rule's name.

    Returns:
        GBNF without alternatives; "" for no members.
    """
    rest, needed = "", False  # what comes from some member on, which is not nothing; if it must
    for pair, required in reversed(pairs):
        if not rest:
            rest = pair
        elif needed:
            rest = f'{pair} "," space {rest}' if required else f'({pair} "," space)? {rest}'
        else:
            more = f'{pair} ("," space {rest})?'
            rest = more if required else named(f"{more} | {rest}")
        needed = needed or required
    return rest if needed or not rest else f"({rest})?"
