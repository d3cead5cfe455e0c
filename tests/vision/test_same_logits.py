"""With weights and a KV memory that give every width the same bits, drafts after images change not
even the last bit of a log-probability, and neither does a prefix that the memory holds."""

from __future__ import annotations

import pytest
from drafters import MostlyRight
from rewriting import write_quantized
from seeing import finished, open_seeing, prompt, start
from session_options import EXACT, EXACT_HERE
from specllama import SpecSession, _core
from vision_models import Part, VisionModel, picture, write_qwen

pytestmark = pytest.mark.skipif(
    EXACT_HERE is not True, reason="on other processors it is not known to be so"
)

PARTS: list[Part] = ["What is this? ", picture(1), "It is a", picture(2, 96, 64), "or a"]
N = 200


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> VisionModel:
    model = write_qwen(tmp_path_factory.mktemp("models"))
    text = write_quantized(model.text, model.text.with_name("q8_0.gguf"), "q8_0")
    return VisionModel(text, model.projector)


def answered(session: SpecSession) -> _core.Stream:
    return finished(start(session, PARTS, N, logprobs=3))


def figures(stream: _core.Stream) -> list[tuple[int, float, list[tuple[int, float]]]]:
    return [(one.token, one.logprob, one.top) for one in stream.logprobs]


def test_drafts_after_images_change_no_bit(quantized: VisionModel) -> None:
    with open_seeing(quantized, **EXACT) as session:
        plain = answered(session)
        again = answered(session)
        assert again.stats.reused_tokens > 0
        assert figures(again) == figures(plain)
        text = [token for token in prompt(session, PARTS).tokens.tolist() if token >= 0]
    drafter = MostlyRight()
    drafter.texts = [[*text, *plain.tokens]]
    with open_seeing(quantized, drafter, spec_length=8, **EXACT) as session:
        drafted = answered(session)
    assert 0 < drafted.stats.accepted < drafted.stats.drafted
    assert figures(drafted) == figures(plain)
