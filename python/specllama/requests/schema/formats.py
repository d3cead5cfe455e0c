"""Formats of strings, as regular expressions."""

from __future__ import annotations

from specllama.requests.schema.asked import can_follow

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"  # Python's first year is 1
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
    f"(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_TIME = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_N = "[0-9]{1,6}"  # more would be too long for Python
_DAYS = f"{_N}Y(?:{_N}M(?:{_N}D)?)?|{_N}M(?:{_N}D)?|{_N}D"
_HOURS = f"T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)"
_HEX = "[0-9a-fA-F]"

_PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P(?:(?:{_DAYS})(?:{_HOURS})?|{_HOURS}|{_N}W)",
    **{
        name: f"(?:{one}{{4}})*(?:{one}{{2}}==|{one}{{3}}=)?"
        for name, one in (("base64", "[A-Za-z0-9+/]"), ("base64url", "[A-Za-z0-9_-]"))
    },
    **{
        f"uuid{n}": f"{_HEX}{{8}}-{_HEX}{{4}}-{n}{_HEX}{{3}}-[89abAB]{_HEX}{{3}}-{_HEX}{{12}}"
        for n in range(1, 9)
    },
}
"""Formats that llguidance does not support, or checks less strictly: its dates allow a 29th of
February in every year."""

_KNOWN = frozenset({"email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
"""Formats that llguidance supports."""

_EQUALS = {
    # zod's pattern for e-mail addresses.
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$":
        r"^([A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$",
    # pydantic's pattern for decimals.
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$": r"^[+-]?(\d+\.?\d*|\.\d+)$",
}  # fmt: skip
"""Well-known patterns with look-ahead, and equivalent patterns without it."""


def formatted(name: str) -> dict[str, str] | None:
    """Return a schema keyword for the format of a string; None if the format is unknown."""
    if name in _PATTERNS:
        return {"pattern": f"^{_PATTERNS[name]}$"}
    return {"format": name} if name in _KNOWN else None


def followable(pattern: str) -> str | None:
    """Return an equivalent regular expression that llguidance supports; None if there is none, or
    if the given one is not valid."""
    pattern = _EQUALS.get(pattern, pattern)
    return pattern if can_follow({"type": "string", "pattern": pattern}) else None
