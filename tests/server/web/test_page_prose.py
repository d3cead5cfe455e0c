"""How the page renders the Markdown of an answer and colours drafts in it."""

from __future__ import annotations

from typing import Any

import pytest
from browser import CHROMIUM, Page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")

TEXT = """# Title

A *word*, **two words**, `code` and [a link](https://example.com/a?b=c), 1 &lt; 2, \\*plain\\*.
A second line.

- one
- two
  - three

> quoted
> twice

| name | n |
|:-----|--:|
| left | 1 |

```python
def f(x):
    return x + 1  # comment
```

1. first

   paragraph

The end, with 5 \\$ and é漢😀.
"""

SHOW = """
  const {Prose} = await import("/page/prose.js");
  const prose = new Prose();
  document.body.append(prose.element);
"""


def rendered(page: Page, text: str, then: str) -> Any:
    """Render a text, and return the result of a script that uses `element`."""
    return page.run(
        f"{SHOW} prose.show([[{text!r}, false]], true); const {{element}} = prose; {then}"
    )


def test_markdown_becomes_elements(blank: Page) -> None:
    script = """return [...element.querySelectorAll(
        "h1, em, strong, code, a, li, blockquote, th, td.right, pre .hljs-keyword")].map(
        e => [e.tagName, e.textContent]).filter(([name]) => name !== "LI")"""
    assert rendered(blank, TEXT, script) == [
        ["H1", "Title"],
        ["EM", "word"],
        ["STRONG", "two words"],
        ["CODE", "code"],
        ["A", "a link"],
        ["BLOCKQUOTE", "\nquoted\ntwice\n"],
        ["TH", "name"],
        ["TH", "n"],
        ["TD", "1"],
        ["CODE", "def f(x):\n    return x + 1  # comment\n"],
        ["SPAN", "def"],
        ["SPAN", "return"],
    ]


def test_links_open_in_a_new_tab_without_a_referrer(blank: Page) -> None:
    script = "const {href, target, rel} = element.querySelector('a'); return [href, target, rel]"
    assert rendered(blank, TEXT, script) == [
        "https://example.com/a?b=c",
        "_blank",
        "noopener noreferrer nofollow",
    ]


def test_code_has_a_copy_button_and_its_language(blank: Page) -> None:
    script = """
      let copied = null;
      navigator.clipboard.writeText = async text => { copied = text; };
      element.querySelector(".code .copy").click();
      await new Promise(resolve => setTimeout(resolve));
      return [element.querySelector(".code-head").textContent, copied]"""
    assert rendered(blank, TEXT, script) == [
        "python",
        "def f(x):\n    return x + 1  # comment\n",
    ]


@pytest.mark.parametrize(
    "formula",
    [
        "$a_i * b_i * c$",
        "$$x_1 * y * z_2$$",
        "\\\\(a * b * c\\\\)",
        "\\\\[\\n- a\\n- b*c*d\\n\\\\]",
        "$$\\n- x_1\\n+ y_2\\n$$",
    ],
)
def test_formulas_stay_plain_text(blank: Page, formula: str) -> None:
    script = f"""{SHOW}
      const formulas = () =>
        [...prose.element.querySelectorAll(".math, em, li")].map(e => e.textContent);
      prose.show([["So {formula} holds.", false]], true);
      const inline = formulas();
      prose.show([["{formula}", false]], true);
      return [inline, formulas()]"""
    inline, alone = blank.run(script)
    expected = formula.replace("\\\\", "\\").replace("\\n", "\n")
    assert alone == [expected]
    assert "\\n" in formula or inline == [expected]


def test_two_prices_are_not_a_formula(blank: Page) -> None:
    text = "It costs $5 or *maybe* $6."
    script = (
        "return [element.querySelectorAll('.math').length, element.querySelector('em').textContent]"
    )
    assert rendered(blank, text, script) == [0, "maybe"]


def test_drafted_tokens_are_coloured_at_every_position(blank: Page) -> None:
    # Each character is one token. Drafted and other tokens alternate in runs of several lengths.
    for period in (2, 3, 7):
        shown = blank.run(f"""{SHOW}
          const text = {TEXT!r};
          prose.show([...text].map((one, i) => [one, Math.floor(i / {period}) % 2 === 0]), true);
          const walker = document.createTreeWalker(prose.element, NodeFilter.SHOW_TEXT);
          const found = [];
          while (walker.nextNode()) {{
            const {{data, parentElement}} = walker.currentNode;
            if (parentElement.closest(".code-head")) continue;
            for (const one of data) found.push([one, !!parentElement.closest(".drafted")]);
          }}
          return found""")
        at = 0
        for one, drafted in shown:
            if one.isspace():
                continue
            if one == "<":  # written as an entity
                at = TEXT.index(" 2, ")
                continue
            at = TEXT.index(one, at)
            assert drafted == (at // period % 2 == 0), (period, at, TEXT[at - 5 : at + 5])
            at += 1
        assert len(shown) > 200


def test_a_stream_ends_with_the_html_of_the_whole_text(blank: Page) -> None:
    for step in (1, 3, 17):
        script = f"""{SHOW}
          const text = {TEXT!r} + "See [there].\\n\\n[there]: https://example.com\\n";
          const parts = [];
          for (let i = 0; i < text.length; i += {step}) {{
            parts.push([text.slice(i, i + {step}), i % 2 === 0]);
            prose.show(parts, false);
          }}
          prose.show(parts, true);
          const whole = new Prose();
          whole.show(parts, true);
          return [prose.element.innerHTML === whole.element.innerHTML,
            prose.element.querySelectorAll("a").length]"""
        assert blank.run(script) == [True, 2], step


def test_only_the_last_block_of_a_stream_is_rendered_again(blank: Page) -> None:
    script = f"""{SHOW}
      const text = {TEXT!r};
      prose.show([[text, false]], false);
      const before = [...prose.element.childNodes];
      prose.show([[text + " More.\\n\\nAnd more", false]], false);
      const after = new Set(prose.element.childNodes);
      return before.filter(one => !after.has(one)).map(one => one.textContent.slice(0, 7))"""
    replaced = [one for one in blank.run(script) if one.strip()]
    assert replaced == ["The end"]


def test_a_thousand_requests_draw_once_per_frame(blank: Page) -> None:
    script = """
      const {Drawing} = await import("/page/prose.js");
      let drawn = 0;
      const drawing = new Drawing(() => { ++drawn; });
      for (let i = 0; i < 1000; ++i) drawing.ask();
      await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return drawn"""
    assert blank.run(script) == 1


def test_long_code_is_highlighted_only_when_it_is_complete(blank: Page) -> None:
    script = f"""{SHOW}
      const text = "```python\\n" + "def f(): pass\\n".repeat(400);
      const marked = () => prose.element.querySelectorAll(".hljs-keyword").length;
      prose.show([[text.slice(0, 400), false]], false);
      const short = marked();
      prose.show([[text, true]], false);
      const long = [marked(), prose.element.querySelectorAll(".drafted").length];
      prose.show([[text + "```\\nEnd\\n", true]], false);
      return [short > 0, ...long, marked()]"""
    assert blank.run(script) == [True, 0, 1, 800]
