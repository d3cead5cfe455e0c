"""How the page reads a stream of the server's events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser import CHROMIUM, Page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="requires Chromium")


def event(**fields: Any) -> str:
    return f"data: {json.dumps({'id': 'chatcmpl-1', 'choices': [], **fields})}\n\n"


def part(delta: dict[str, str], **fields: Any) -> str:
    return event(choices=[{"index": 0, "delta": delta, **fields}])


BEGINNING = part({"role": "assistant", "content": ""})
THOUGHTS = part({"reasoning_content": "I **see**"}) + part({"reasoning_content": " é漢😀."})
CONTENT = part({"content": "It is "}) + part({"content": "*four*."}, from_draft=True)
END = part({}, finish_reason="stop", trace_html="<div class=specllama-trace></div>") + event(
    usage={"completion_tokens": 4, "total_tokens": 30, "drafted_tokens": 2, "accepted_tokens": 1},
    timings={"predicted_rounds_n": 2, "draft_n_accepted": 1, "speedup": 1.5, "id_slot": 3},
)


def answered(page: Page, stream: str, then: str) -> Any:
    """Answer a request with a stream that arrives in pieces of three bytes. Return the result of a
    script that uses `answer` and `error`."""
    return page.run(f"""
      const {{Answer}} = await import("/page/answer.js");
      const {{Generation}} = await import("/page/generation.js");
      const bytes = new TextEncoder().encode({json.dumps(stream)});
      const real = window.fetch;
      window.fetch = async (path, options) => {{
        window.asked = [path, JSON.parse(options.body)];
        return new Response(new ReadableStream({{start(controller) {{
          for (let i = 0; i < bytes.length; i += 3) controller.enqueue(bytes.slice(i, i + 3));
          controller.close();
        }}}}));
      }};
      const element = document.createElement("div");
      document.body.append(element);
      const answer = new Answer(element, {{parts: []}});
      let traced = null, error = "";
      const store = {{trace: html => {{ traced = html; }}}};
      try {{
        await new Generation(answer, {{messages: []}}, "", store).run();
      }} catch (thrown) {{
        error = thrown.message;
      }}
      window.fetch = real;
      {then}""")


def test_thoughts_are_folded_and_separate_from_the_text(blank: Page) -> None:
    turn, thoughts, is_open, text, error = answered(
        blank,
        BEGINNING + THOUGHTS + CONTENT + END + "data: [DONE]\n\n",
        """const box = element.querySelector(".thoughts");
        return [answer.turn, box.querySelector(".prose").innerHTML, box.open,
          element.querySelector(".text").innerHTML, error]""",
    )
    assert error == ""
    assert turn["parts"] == [["It is ", False], ["*four*.", True]]
    assert turn["thoughts"] == [["I **see** é漢😀.", False]]
    assert "<strong>see</strong> é漢😀." in thoughts
    assert is_open is False
    assert '<em><span class="drafted">four</span></em>' in text
    assert turn["used"] == 30
    for figure in (
        "4 tokens",
        "speedup 1.5\u00d7",
        "1.50 tokens per round",
        "slot 3",
        "25% from drafts",
    ):
        assert figure in turn["figures"]


def test_an_error_in_a_stream_keeps_the_text_before_it(blank: Page) -> None:
    stream = BEGINNING + CONTENT + event(error={"message": "The GPU is gone."})
    turn, error = answered(blank, stream, "return [answer.turn, error]")
    assert error == "The GPU is gone."
    assert turn["parts"] == [["It is ", False], ["*four*.", True]]
    assert "running" not in turn


def test_an_answer_without_a_token_is_an_error(blank: Page) -> None:
    error = answered(blank, BEGINNING + END, "return error")
    assert error == "The model returned an empty answer."


def test_the_request_asks_for_figures_and_trace(blank: Page) -> None:
    path, body = answered(blank, BEGINNING + CONTENT + END, "return window.asked")
    assert path == "/v1/chat/completions"
    assert body["stream"]
    assert body["stream_options"] == {"include_usage": True}
    assert body["trace_html"]
