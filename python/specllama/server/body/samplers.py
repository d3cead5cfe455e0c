"""The field `samplers` of llama-server's requests: the steps of sampling, and their order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from specllama.requests.options import FIELDS, GenerateOptions
from specllama.server.body.fields import Fields
from specllama.server.body.limits import check_number
from specllama.server.error import ApiError, leave_out

_STEPS: dict[str, dict[str, Any]] = {
    "penalties": {"repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0},
    "dry": {"dry_multiplier": 0.0},
    "top_n_sigma": {"top_n_sigma": 0.0},
    "top_k": {"top_k": 0},
    "typ_p": {"typical_p": 1.0},
    "top_p": {"top_p": 1.0},
    "min_p": {"min_p": 0.0},
    "xtc": {"xtc_probability": 0.0},
    "temperature": {"temperature": 1.0},
}
"""The steps in llama.cpp's order, each with the options that switch it off."""

_CHARACTERS = dict(zip("edskypmxt", _STEPS, strict=True))
"""llama.cpp's letters for them."""

_ALIASES = {
    **{step.replace("_", ""): step for step in _STEPS},
    "nucleus": "top_p", "temp": "temperature", "typ": "typ_p", "typicalp": "typ_p",
}  # fmt: skip
"""llama.cpp's other names. Dashes and underscores in them are ignored."""

_MOST = 64


def without_steps(fields: Fields, options: GenerateOptions) -> GenerateOptions:
    """Return options that switch off the steps that `samplers` omits; {} if the field was not given
    or has "infill". Unknown names are ignored, as in llama-server.

    Raises:
        ApiError: The steps that have an effect are in another order, or one occurs twice.
    """
    if "samplers" not in fields:
        return {}
    named = _named(fields)
    if named is None:
        return {}
    active = [step for step in named if _changes(step, options)]
    for one, after in pairwise(active):
        if one == after or list(_STEPS).index(one) > list(_STEPS).index(after):
            raise ApiError(
                400,
                f'samplers has "{one}" before "{after}", but the order is fixed: '
                f"{', '.join(_STEPS)}; leave samplers out, or give them in this order.",
                param="samplers",
            )
    left_out = [off for step, off in _STEPS.items() if step not in named]
    return cast(GenerateOptions, {name: value for off in left_out for name, value in off.items()})


def _named(fields: Fields) -> list[str] | None:
    """Return the steps by our names; None if they have "infill"."""
    given = fields.any("samplers")
    if isinstance(given, str):
        check_number("samplers", len(given), _MOST, "letters")
        return [_CHARACTERS[one] for one in given if one in _CHARACTERS]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        fields.refuse("samplers", "a list of names, or a string of letters")
    check_number("samplers", len(given), _MOST, "names")
    plain = [one.lower().replace("-", "").replace("_", "") for one in given]
    if "infill" in plain:  # from editors, which always send the same names with it
        leave_out('samplers with "infill"')
        return None
    return [_ALIASES[one] for one in plain if one in _ALIASES]


def _changes(step: str, options: GenerateOptions) -> bool:
    """Whether a step has an effect with these options."""
    if step == "penalties" and options.get("repeat_last_n") == 0:
        return False
    found = cast(dict[str, Any], options)
    return any(
        found.get(name, FIELDS[name].default) not in ((off, -1) if name == "top_k" else (off,))
        for name, off in _STEPS[step].items()
    )
