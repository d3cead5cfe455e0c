"""Runs chat templates, which come with downloaded models, with limits on time and memory."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from itertools import chain
from typing import Any

from jinja2 import nodes
from jinja2.ext import loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from specllama.errors import ModelError
from specllama.model.tainted_text import TaintedText, is_tainted, joined, unlike, written
from specllama.model.template_additions import GenerationTags, now, to_json
from specllama.model.template_meter import MOST_BYTES, MOST_PARTS, Meter, TemplateLimitError

MOST_SOURCE = 1 << 17
"""Most characters of a template. Compiling these takes at most two seconds; it has no time limit
itself."""

_MOST_BITS = 1 << 16
_WIDEST = 1000
"""Most columns of padded text."""
_WIDE = re.compile(r"%(\([^)]*\))?[-#0 +.0-9]*([0-9]{4}|\*)")
_WIDE_FIELD = re.compile(r"\{[^{}]*([0-9]{4}|\{)")

_LEFT_OUT = (
    "batch", "center", "filesizeformat", "pprint", "random", "slice", "striptags", "urlize",
    "wordwrap", "xmlattr",
)  # fmt: skip
"""Filters that no chat template needs. Each would need its own limit."""
_OF_ANY_SIZE = frozenset((
    "abs", "attr", "count", "d", "default", "first", "float", "int", "items", "last", "length",
    "list", "map", "reject", "rejectattr", "reverse", "round", "select", "selectattr",
))  # fmt: skip
"""Filters that do not read the values inside a list."""
_OF_LISTS = frozenset(("join", "list", "sort", "unique", "groupby", "sum", "min", "max"))
_METHODS = frozenset((
    "capitalize", "casefold", "count", "endswith", "find", "format", "format_map", "index",
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace",
    "istitle", "isupper", "join", "lower", "lstrip", "partition", "removeprefix", "removesuffix",
    "replace", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper",
))  # fmt: skip
"""The allowed methods of texts. Others are left out because they pad, encode, or take quadratic
time."""
_KEEPING = _OF_ANY_SIZE | {
    "capitalize", "dictsort", "groupby", "lower", "max", "min", "replace", "sort", "trim", "unique",
    "upper",
}  # fmt: skip
"""Filters whose results keep their masks: they return given values, or results of methods of
texts."""
_LONGEST_DATE = 1000  # characters of the format


class TemplateSandbox:
    """A chat template that several threads can render at once.

    Args:
        source: The template.

    Raises:
        ModelError: It is too long, or is not a template.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MOST_SOURCE:
            raise ModelError(
                f"The model's chat template has {len(source)} characters; at most {MOST_SOURCE} "
                "are allowed."
            )
        environment = _Environment()
        try:
            with environment.meter:  # compiling computes constants
                self._template = environment.from_string(source)
        except TemplateLimitError:
            raise
        except Exception as error:  # including errors of Python's compiler for deep nesting
            why = " ".join(str(error).split()).rstrip(".") or "it nests too deep"  # MemoryError
            raise ModelError(f"The model's chat template cannot be parsed: {why:.300}.") from None
        self._meter = environment.meter

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text for these values; it is a tainted text if some of them are. Raises
        TemplateLimitError, and any exception that the template raises."""
        with self._meter:
            return self._template.render(
                values,
                raise_exception=_raise,
                strftime_now=_now,
            )


def _raise(message: str) -> None:
    raise ValueError(message)


def _now(form: str) -> str:
    if len(form) > _LONGEST_DATE:  # each field may have a width
        raise TemplateLimitError("The chat template writes a date that is too long.")
    return now(form)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja, configured as in transformers for chat templates. Loops, calls, and all operations
    that make longer values count their steps and bytes."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self) -> None:
        self.meter = Meter()
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[GenerationTags, loopcontrols],
            finalize=self._printed,
        )
        self.filters["tojson"] = to_json
        # Nothing is escaped here. A safe string of Jinja would escape the text joined to it.
        self.filters["safe"] = str
        del self.globals["lipsum"]
        for name in _LEFT_OUT:
            del self.filters[name]
        bounded = _Bounded(self.meter)
        for name, one in self.filters.items():
            self.filters[name] = bounded.filter(name, one)
        tests: dict[str, Any] = self.tests
        for name, test in tests.items():
            tests[name] = bounded.test(test)
        self.filters |= {
            "_counted": self._counted, "_made": self._made, "_concat": self._concat,
            "_compared": self._compared,
        }  # fmt: skip

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        _Guards().visit(template)
        template.set_environment(self)
        return template

    def concat(self, parts: Iterable[str]) -> str:
        """Join parts of the output."""
        kept = []
        for one in parts:
            self.meter.make(len(one))
            kept.append(one)
        return joined(kept)

    def call(self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function, a macro or a method."""
        self.meter.step()
        if isinstance(text := getattr(__obj, "__self__", None), str):
            if __obj.__name__ == "join" and args:
                args = (_listed(self.meter, args[0]), *args[1:])
            _check_method(self.meter, text, __obj.__name__, args, kwargs)
            if type(text) is str:
                __obj = getattr(unlike(text, args), __obj.__name__)
        return self._made(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return the function that replaces a text's `format`; None if `value` is another
        method."""
        if (wrapped := super().wrap_str_format(value)) is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            given = (*args, *kwargs.values())
            _check_format(self.meter, value.__self__.replace("{{", ""), given, _WIDE_FIELD)
            text = wrapped(*args, **kwargs)
            return TaintedText(text) if is_tainted(value.__self__, *given) else text

        return bounded

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may use an attribute."""
        if isinstance(obj, (str, bytes, int, float)):
            return isinstance(obj, str) and attr in _METHODS
        if isinstance(obj, list) and attr in ("append", "pop"):  # Kimi's templates use these
            return True
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute left operator right."""
        self.meter.step()
        if operator == "%" and isinstance(left, str):
            _check_format(self.meter, left, right)
        elif operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = (left.bit_length(), right.bit_length())
            if (sum(bits) if operator == "*" else bits[0] * abs(right)) > _MOST_BITS:
                raise TemplateLimitError("The chat template computes too large a number.")
        elif operator == "*":
            for one, times in ((left, right), (right, left)):
                if isinstance(times, int) and not isinstance(one, (int, float)):
                    self.meter.make(sys.getsizeof(one) * max(times, 0))
        if isinstance(left, str):
            left = unlike(left, right)
        return self._made(super().call_binop(context, operator, left, right))

    def _printed(self, value: Any) -> Any:
        return value if isinstance(value, str) else written(self._compared(value))

    def _compared(self, value: Any) -> Any:
        if isinstance(value, (Mapping, list, tuple)):
            self.meter.look_into(value)
        return value

    def _made(self, value: Any) -> Any:
        if isinstance(value, (str, list, tuple, dict)):
            self.meter.make(sys.getsizeof(value))
        return value

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for one in values:
            self.meter.step()
            yield one

    def _concat(self, values: list[Any]) -> str:
        self.meter.make(self.meter.look_into(*values))
        return joined(map(written, values))


class _Guards(NodeTransformer):
    """Puts the environment's filters around operations that it could not intercept otherwise."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_counted")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_concat")

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(node, "_made") if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "_compared")
        for one in node.ops:
            one.expr = _filtered(one.expr, "_compared")
        return node


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Bounded:
    """Wraps filters and tests, so that they count their steps and bytes."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def filter(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a filter with limits."""
        meter = self._meter
        n_skipped = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            meter.step()
            value, *others = args[n_skipped:]
            lazy = name == "tojson" and isinstance(value, Iterator)
            if lazy or name in _OF_LISTS:
                value = _listed(meter, value)
            given = [*others, *kwargs.values()]
            size = 0
            if name not in _OF_ANY_SIZE:
                size = meter.look_into(value, *given)
            _check_filter(meter, name, value, given, size)
            if isinstance(value, str):
                value = unlike(value, *given)
            result = function(*args[:n_skipped], value, *others, **kwargs)
            if isinstance(result, (str, list)):
                meter.make(sys.getsizeof(result))
            if isinstance(result, str) and name not in _KEEPING:
                return _tainted_like(name, result, value, given)
            if isinstance(result, int) and result.bit_length() > _MOST_BITS:
                raise TemplateLimitError("The chat template computes too large a number.")
            return result

        return bounded

    def test(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a test with limits."""
        n_skipped = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self._meter.step()
            if args[n_skipped + 1 :]:  # tests without arguments do not read inside the value
                self._meter.look_into(*args[n_skipped:])
            return function(*args, **kwargs)

        return bounded


def _tainted_like(name: str, result: str, value: Any, given: list[Any]) -> str:
    """Return the result of a filter, tainted if the value or another argument is."""
    if not is_tainted(value, *given):
        return result
    if isinstance(value, str) and result == value:
        return value
    if name == "join" and len(given) < 2:
        return joined(map(written, value), *map(str, given))
    return TaintedText(result)


def _listed(meter: Meter, values: Any) -> Any:
    """Return an iterable as a list; a mapping, and a value that is not iterable, unchanged."""
    if isinstance(values, (list, tuple, Mapping)) or not isinstance(values, Iterable):
        return values
    kept = []
    for one in values:
        meter.step()
        kept.append(one)
        if len(kept) > MOST_PARTS:
            meter.make(MOST_BYTES + 1)
    return kept


def _check_filter(meter: Meter, name: str, value: Any, given: list[Any], size: int) -> None:
    """Count the result of a filter in advance if it may be larger than the filter's arguments."""
    if name == "replace" and len(given) > 1:
        _check_replaced(meter, str(value), str(given[0]), str(given[1]))
    elif name == "join":
        meter.make(size + len(value) * sum(len(str(one)) for one in given[:1]))
    elif name == "format":
        _check_format(meter, str(value), tuple(given))
    elif name in ("indent", "tojson", "round", "truncate"):
        widths = [one for one in given if isinstance(one, int)]
        if any(one > _WIDEST for one in widths):
            raise TemplateLimitError(f"The chat template gives {name} too large a number.")
        parts = chain.from_iterable(
            one if isinstance(one, (list, tuple)) else (one,) for one in given
        )
        texts = sum(len(one) for one in parts if isinstance(one, str))
        meter.make(size + (size if name != "truncate" else 1) * (sum(map(abs, widths)) + texts))
    elif name == "sum" and not all(isinstance(one, (int, float, str)) for one in given):
        raise TemplateLimitError("The chat template adds lists by sum; use another one.")


def _check_method(
    meter: Meter, text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Count the result of a text's method in advance."""
    given = [*args, *kwargs.values()]
    size = meter.look_into(text, *given)
    if name == "replace" and len(given) > 1:
        _check_replaced(meter, text, str(given[0]), str(given[1]))
    elif name == "join" and given and isinstance(given[0], (list, tuple, Mapping)):
        meter.make(size + len(text) * len(given[0]))


def _check_replaced(meter: Meter, text: str, old: str, new: str) -> None:
    n = text.count(old)
    meter.make(len(text) + n * max(len(new) - len(old), 0))


def _check_format(meter: Meter, text: str, values: Any, wide: re.Pattern[str] = _WIDE) -> None:
    """Count the result of `text % values` in advance."""
    if wide.search(text):
        raise TemplateLimitError("The chat template formats with a width that is too large.")
    n = meter.look_into(*(values if isinstance(values, tuple) else (values,)))
    meter.make(len(text) + (text.count("%") + text.count("{")) * (n + _WIDEST))
