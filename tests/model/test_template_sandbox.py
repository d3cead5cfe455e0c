"""Chat templates come with downloaded models: none can hang the process or fill its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from specllama import ArgumentError, ModelError, SpecSession
from specllama.model.chat_template import ChatTemplate

ASKED = [{"role": "user", "content": "?"}]

THOUSAND = repr("a" * 1000)
"""A thousand letters, which are also hexadecimal digits."""


def doubled(step: str, before: str = "x='aaaa', y=[1]") -> str:
    """Return a template that repeats a step sixty times."""
    return (
        f"{{% set ns = namespace({before}) %}}{{% for i in range(60) %}}{step}{{% endfor %}}"
        "{{ ns.x }}"
    )


LONG = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}" * 2,
    "macros": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}"
    "{{ f(99) }}",
    "lists": "{% for i in range(99999) %}{% set x = range(99999)|list %}{% endfor %}",
    "mapped": "{% for i in range(99999) %}"
    "{% set x = range(99999)|map('string')|list %}{% endfor %}",
}

LARGE = {
    "times": "{{ 'a' * 10**10 }}",
    "times list": "{{ [1] * 10**10 }}",
    "concatenation": doubled("{% set ns.x = ns.x ~ ns.x %}"),
    "sum": doubled("{% set ns.x = ns.x + ns.x %}"),
    "list sum": doubled("{% set ns.x = ns.x + ns.x %}", "x=[1]"),
    "block": doubled("{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}"),
    "join": doubled("{% set ns.x = [ns.x, ns.x]|join %}"),
    "join method": doubled("{% set ns.x = ''.join([ns.x, ns.x]) %}"),
    "join method of a text": f"{{{{ ('a' * 30000).join({THOUSAND} * 900) }}}}",
    "join method of an iterator": f"{{{{ ''.join(([{THOUSAND} * 30000] * 99)|select) }}}}",
    "replace": doubled("{% set ns.x = ns.x|replace('a', 'aaa') %}"),
    "replace method": doubled("{% set ns.x = ns.x.replace('a', 'aaa') %}"),
    "format": doubled("{% set ns.x = '%s%s'|format(ns.x, ns.x) %}"),
    "format operator": doubled("{% set ns.x = '%s%s' % (ns.x, ns.x) %}"),
    "format method": doubled("{% set ns.x = '{0}{0}'.format(ns.x) %}"),
    "macro": "{% macro f(x) %}{{ x }}{{ x }}{% endmacro %}" + doubled("{% set ns.x = f(ns.x) %}"),
    "width": "{{ '%999999999d' % 1 }}",
    "named width": "{{ '%(a)999999999d' % {'a': 1} }}",
    "width of an argument": "{{ '%*d' % (999999999, 1) }}",
    "width of a field": "{{ '{:999999999}'.format(1) }}",
    "width of a field of an argument": "{{ '{:{}}'.format(1, 999999999) }}",
    "indent": "{{ 'a\nb'|indent(10**9) }}",
    "indent of JSON": "{{ [1]|tojson(indent=10**9) }}",
    "separators of JSON": "{{ ([1] * 90000)|tojson(separators=('a' * 30000, ':')) }}",
    "separators of JSON in a list": "{{ ([1] * 90000)|tojson(separators=['a' * 30000, ':']) }}",
    "date": "{{ strftime_now('%9999d' * 100000) }}",
    "large numbers": "{{ [9 ** 4000] * 400000 }}",
    "large numbers joined": "{{ ([9 ** 4000] * 400000)|join }}",
    "large quotient": f"{{{{ ({THOUSAND} * 9000)|int(base=16)"
    f" // ({THOUSAND} * 4000)|int(base=16) }}}}",
    "digits": "{{ 1.5|round(10**9, 'ceil') }}",
    "power": "{{ 9 ** (10**9) }}",
    "squares": doubled("{% set ns.x = ns.x * ns.x %}", "x=7"),
    "shared lists": doubled("{% set ns.x = [ns.x, ns.x] %}"),
    "shared lists as JSON": doubled("{% set ns.x = [ns.x, ns.x] %}") + "{{ ns.x|tojson }}",
    "shared lists compared": doubled(
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}"
    ).replace("{{ ns.x }}", "{{ ns.x == ns.y }}"),
    "shared lists tested": doubled(
        "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}"
    ).replace("{{ ns.x }}", "{{ ns.x is in [ns.y] }}"),
    "shared lists sorted": doubled("{% set ns.x = [ns.x, ns.x] %}").replace(
        "{{ ns.x }}", "{{ [ns.x, ns.x]|sort|length }}"
    ),
    "lists summed": "{{ ([[1]] * 1000000)|sum(start=[])|length }}",
    "characters": "{{ ('\N{CJK UNIFIED IDEOGRAPH-6F22}' * 8000000)|map('upper')|list|length }}",
    "many texts": "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
    "{% set ns.l = ns.l + ['a' * 1000000 ~ i] %}{% endfor %}",
    "many slices": "{% set x = 'a' * 10000000 %}{% set ns = namespace(l=[]) %}"
    "{% for i in range(99999) %}{% set ns.l = ns.l + [x[i + 1:]] %}{% endfor %}",
    "output": "{% for i in range(99999) %}{{ 'a' * 10000 }}{% endfor %}",
    "constants": "{{ ('a' * 30000000)|upper|upper|upper }}" * 20,
    "itself": "{{ 1 }}" * 20_000,
}

UNREADABLE = {
    "deep": "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
    "long": "{{" + "+".join(["'a'"] * 5000) + "}}",
    "deep blocks": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "deep conditions": "{% if 1 %}" + "{% elif 1 %}" * 9000 + "{% endif %}",
    "nested loops": "{% for a in [1] %}" * 30 + "{% endfor %}" * 30,
    "padding": "{{ 'a'|center(10**9) }}",
    "syntax": "{% if %}",
}

REFUSING = {
    "recursion": "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "padding method": "{{ 'a'.ljust(10**9) }}",
    "padding of bytes": "{{ 'a'.encode().ljust(10**9) }}",
    "bytes of a number": "{{ (1).to_bytes(10**9, 'big') }}",
    "range": "{% for a in range(10**9) %}{% endfor %}",
    "include": "{% include 'x' %}",
}

IN_A_CHILD = f"""
import json, sys
sys.path[:0] = {sys.path!r}
from processes import peak_mib
from specllama.errors import SpecllamaError
from specllama.model.chat_template import ChatTemplate
for name, source in json.load(sys.stdin).items():
    said = ""
    try:
        ChatTemplate(source, bos="", eos="").render([{{"role": "user", "content": "?"}}])
    except SpecllamaError as error:
        said = type(error).__name__ + ": " + str(error)
    print(json.dumps([name, said, peak_mib()]), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, int]]:
    """The error of each template, and the most MiB that the process has used by then. If a template
    ends the process, it is missing, and so are those after it."""
    process = subprocess.run(
        [sys.executable, "-c", IN_A_CHILD],
        input=json.dumps({**LARGE, **LONG}), capture_output=True, encoding="utf-8", timeout=300,
        check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return {name: (said, peak) for name, said, peak in lines}


@pytest.mark.parametrize("name", LARGE)
def test_a_template_that_uses_too_much_memory_is_stopped(
    outcomes: dict[str, tuple[str, int]], name: str
) -> None:
    said, peak = outcomes[name]
    assert said.startswith(("TemplateLimitError: ", "ModelError: ")), said
    assert peak < 800  # Python and its packages use less than 100


@pytest.mark.parametrize("name", LONG)
def test_a_template_that_does_not_end_is_stopped(
    outcomes: dict[str, tuple[str, int]], name: str
) -> None:
    said, peak = outcomes[name]
    assert said.endswith("takes more than 2 s; use another one.")
    assert peak < 800


@pytest.mark.parametrize("name", UNREADABLE)
def test_unparsable_templates_are_refused(name: str) -> None:
    with pytest.raises(ModelError, match="chat template cannot be parsed: "):
        ChatTemplate(UNREADABLE[name], bos="", eos="")


@pytest.mark.parametrize("name", REFUSING)
def test_templates_with_forbidden_operations_refuse_the_messages(name: str) -> None:
    template = ChatTemplate(REFUSING[name], bos="", eos="")
    with pytest.raises(ArgumentError, match="The chat template refuses these messages: "):
        template.render(ASKED)


def test_a_session_reports_a_template_that_takes_too_long(scripted: Callable[..., Path]) -> None:
    """The error is the template's own; later messages of the session get the same one."""
    model = scripted(["yes", "no"], chat_template=LONG["macros"])
    with SpecSession(model, None, n_ctx=256, n_threads=1, n_gpu_layers=0) as session:
        for _ in range(2):
            with pytest.raises(ModelError, match="takes more than 2 s; use another one"):
                session.chat(ASKED, max_tokens=1)


def test_a_large_conversation_is_within_the_template_limits() -> None:
    source = (
        "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = m.role ~ ': ' ~ "
        "m.content|trim + '\n' %}{{ ns.all }}{% endfor %}{{ messages|tojson|length }} "
        "{{ '%05.1f and {}'.format(messages|length) % 2024 }}{{ messages[1:]|length }}"
    )
    messages = [{"role": "user", "content": "word " * 200}] * 4000
    text = ChatTemplate(source, bos="", eos="").render(messages)
    assert text.count("word") == 4000 * 200
    assert text.endswith("2024.0 and 40003999")


@pytest.mark.parametrize("source", ["{{ messages|length }}{{ loop }}", "{{ messages[0].content }}"])
def test_several_threads_can_render_a_template_at_once(source: str) -> None:
    template = ChatTemplate(source, bos="", eos="")
    with ThreadPoolExecutor(4) as pool:
        texts = set(pool.map(lambda _: template.render(ASKED), range(200)))
    assert len(texts) == 1
