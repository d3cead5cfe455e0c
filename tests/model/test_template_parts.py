"""Templates that show a content only if it is a list of parts, as some vision models have."""

from __future__ import annotations

from typing import Any

import pytest
from specllama.model.chat_template import ChatTemplate

# As in SmolVLM.
ONLY_PARTS = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}"
    "{% elif part.type == 'image' %}[image]{% endif %}{% endfor %}|{% endfor %}"
)
# As in Gemma 3 and Qwen2.5-VL.
BOTH = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
BOTH += ONLY_PARTS.partition("<{{ m.role }}>")[2].replace("|", "{% endif %}|", 1)
# Fails for contents that are texts.
STRICT = ONLY_PARTS.replace("{% for part", "{{ m.content[0].type.upper() }}{% for part", 1)


def rendered(source: str, messages: list[dict[str, Any]]) -> str:
    return str(ChatTemplate(source, bos="", eos="").render(messages))


@pytest.mark.parametrize("source", [ONLY_PARTS, BOTH])
def test_templates_for_parts_show_contents_that_are_texts(source: str) -> None:
    messages = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "d"},
    ]
    assert rendered(source, messages) == "<system>a|<user>b\nc|<assistant>|<user>d|"


def test_texts_become_parts_if_the_template_refuses_texts() -> None:
    assert rendered(STRICT, [{"role": "user", "content": "a"}]) == "<user>TEXTa|"
