"""Acceptance rates of drafters, compared with sums over rows, with the sampler, and with
sessions."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from folders import DATA
from random_model import write_dense
from scripted_model import BOS, EOS, FIRST, write_scripted_model
from specllama import ArgumentError, ModelError, SpecSession, theory
from specllama.__main__ import main
from specllama.measure import alpha
from specllama.measure.alpha import Estimate, Text
from specllama.measure.approximations import (
    Approximation,
    Bigram,
    DraftModel,
    Matches,
    NGrams,
    Unigram,
)
from specllama.measure.logits import LogitsModel, probabilities
from specllama.session import BUNDLED_DRAFT, BUNDLED_MODEL
from specllama.workloads import HELD_OUT, packaged_prompts

CPU: dict[str, Any] = {"n_threads": 1, "n_gpu_layers": 0}
SMALL = ["-t", "1", "-ngl", "0", "--count", "3", "-n", "8", "--prompt-length", "24"]


@pytest.fixture(scope="module")
def target() -> Iterator[LogitsModel]:
    with LogitsModel(BUNDLED_MODEL, n_ctx=160, **CPU) as model:
        yield model


@pytest.fixture(scope="module")
def draft() -> Iterator[LogitsModel]:
    with LogitsModel(BUNDLED_DRAFT, n_ctx=160, **CPU) as model:
        yield model


@pytest.fixture(scope="module")
def texts(target: LogitsModel) -> dict[float, list[Text]]:
    """At each temperature, six prompts of 48 tokens and 40 tokens that the model generated."""
    prompts = [
        target.tokenize(prompt, add_special=True)[:48] for prompt in packaged_prompts(HELD_OUT)[:6]
    ]
    return {t: alpha.generate(target, prompts, 40, t) for t in (0.0, 0.5, 1.0)}


def softmax(row: list[float], temperature: float) -> list[float]:
    highest = max(row)
    weights = [math.exp((x - highest) / temperature) for x in row]
    total = sum(weights)
    return [weight / total for weight in weights]


def test_measured_rows_are_the_logits_of_the_pytorch_network(target: LogitsModel) -> None:
    """The reference has stored results: see models/reference.py."""
    data = DATA / "reference.json"
    reference = json.loads(data.read_text("utf-8"))
    prompt, expected = reference["prompt"], reference["models"]["target"]
    rows = target.rows(prompt, 1)
    assert rows.shape == (len(prompt) - 1, target.n_vocab)
    # Sums in Q8_0 round differently from float32.
    wanted = np.array(expected["logits"])[: len(rows)]
    assert np.abs(rows[:, reference["columns"]] - wanted).max() < 0.35
    assert (target.rows(prompt, 5) == target.rows(prompt, 1)[4:]).all()


def test_generated_texts_equal_those_of_a_session(texts: dict[float, list[Text]]) -> None:
    """The session has llama-cpp-python's default KV memory and attention; near-ties may still
    differ."""
    same = 0
    with SpecSession(draft=None, kv_type="f16", flash_attn=False, **CPU) as session:
        for some in texts.values():
            for text in some:
                tokens = session.generate(
                    text.tokens[: text.first],
                    max_tokens=12,
                    temperature=text.temperature,
                    seed=text.seed,
                ).tokens
                same += tokens == list(text.tokens[text.first :])[:12]
    assert same >= 16, same  # of 18


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_alpha_matches_sums_in_plain_python(
    target: LogitsModel, texts: dict[float, list[Text]], temperature: float
) -> None:
    """Tokens are decoded one by one with llama-cpp-python, and the sums are in plain Python."""
    text = texts[temperature][0]
    text = Text(text.tokens[: text.first + 4], text.first, temperature, text.seed)
    betas, same = [], []
    models = [
        llama_cpp.Llama(
            str(path), n_ctx=128, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False
        )
        for path in (BUNDLED_MODEL, BUNDLED_DRAFT)
    ]
    for i in range(text.first, len(text.tokens)):
        rows = []
        for model in models:
            model.reset()
            model.eval(list(text.tokens[:i]))
            rows.append([float(x) for x in model.scores[i - 1]])
        same.append(rows[0].index(max(rows[0])) == rows[1].index(max(rows[1])))
        if temperature > 0:
            p, q = (softmax(row, temperature) for row in rows)
            betas.append(sum(map(min, p, q)))
    for model in models:
        model.close()
    with LogitsModel(BUNDLED_DRAFT, n_ctx=128, **CPU) as draft:
        (one,) = alpha.measure(target, [text], [DraftModel("draft", draft)])
    assert one.agreement.mean == sum(same) / 4
    wanted = sum(betas) / 4 if temperature > 0 else sum(same) / 4
    # Four rows in one decode round differently from one.
    assert one.alpha.mean == pytest.approx(wanted, abs=0.01)
    assert one.proposed == 1


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_a_model_accepts_all_its_own_drafts(
    target: LogitsModel, texts: dict[float, list[Text]], temperature: float
) -> None:
    with LogitsModel(BUNDLED_MODEL, n_ctx=160, **CPU) as twin:
        (one,) = alpha.measure(target, texts[temperature], [DraftModel("twin", twin)])
        rules = alpha.compare_rules(target, twin, texts[temperature], "twin")
    assert one.alpha.mean == pytest.approx(1, abs=1e-9)
    assert one.agreement.mean == 1
    assert rules.coupled.mean == 1
    assert rules.rejection.mean == 1
    assert rules.overlap.mean == pytest.approx(1, abs=1e-9)
    assert (rules.greedy.mean == 1) == (temperature == 0)


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_acceptance_rules_match_the_theory(
    target: LogitsModel, draft: LogitsModel, texts: dict[float, list[Text]], temperature: float
) -> None:
    rules = alpha.compare_rules(target, draft, texts[temperature], "draft")
    (one,) = alpha.measure(target, texts[temperature], [DraftModel("draft", draft)])
    assert rules.overlap.mean == pytest.approx(one.alpha.mean)
    if temperature == 0:
        assert rules.greedy == rules.coupled == rules.rejection == rules.bound == rules.overlap
        return
    coupled, greedy, n_tokens = [], [], 0
    for text in texts[temperature]:
        p, q = (
            probabilities(model.rows(text.tokens, text.first), temperature)
            for model in (target, draft)
        )
        coupled.append(theory.coupled_acceptance(p, q))
        greedy.append(theory.greedy_draft_acceptance(p, q))
        n_tokens += len(p)
    four = 4 * 0.5 / math.sqrt(n_tokens)  # at most four standard errors of a share
    assert abs(rules.rejection.mean - rules.overlap.mean) < four
    assert abs(rules.coupled.mean - np.concatenate(coupled).mean()) < four
    assert abs(rules.greedy.mean - np.concatenate(greedy).mean()) < four
    assert rules.bound.mean <= rules.overlap.mean


def test_lenience_raises_acceptance_by_its_formula(
    target: LogitsModel, draft: LogitsModel, texts: dict[float, list[Text]]
) -> None:
    for temperature in (0.0, 1.0):
        estimates = alpha.measure(
            target, texts[temperature], [DraftModel("draft", draft)], (1.0, 0.5, 0.1)
        )
        means = [one.alpha.mean for one in estimates]
        assert means == sorted(means)
        assert means[0] < means[-1] <= 1
        for lenience, mean in zip((1.0, 0.5, 0.1), means, strict=True):
            total, n = 0.0, 0
            for text in texts[temperature]:
                logits = target.rows(text.tokens, text.first)
                drafted = draft.rows(text.tokens, text.first)
                for row, other in zip(logits, drafted, strict=True):
                    p, q = (np.exp(x - x.max(), dtype=np.float64) for x in (row, other))
                    if temperature == 0:
                        total += p[np.argmax(q)] >= lenience
                    else:
                        total += np.minimum(p / p.sum() / lenience, q / q.sum()).sum()
                    n += 1
            assert mean == pytest.approx(total / n, abs=1e-6)


@pytest.mark.parametrize(("temperature", "lenience"), [(0.0, 0.3), (1.0, 1.0), (1.0, 0.3)])
def test_alpha_matches_the_acceptance_of_a_session(
    target: LogitsModel, draft: LogitsModel, temperature: float, lenience: float
) -> None:
    """The session drafts one token a round; alpha is measured on the text that it generated."""
    texts, drafted, accepted = [], 0, 0
    with SpecSession(None, BUNDLED_DRAFT, spec_length=1, **CPU) as session:
        for seed, prompt in enumerate(packaged_prompts(HELD_OUT)[:12]):
            tokens = session.tokenize(prompt)[:48]
            result = session.generate(
                tokens,
                max_tokens=60,
                temperature=temperature,
                seed=seed,
                acceptance="rejection",
                lenience=lenience,
            )
            drafted += result.stats.drafted
            accepted += result.stats.accepted
            texts.append(Text([*tokens, *result.tokens], len(tokens), temperature, seed))
    (one,) = alpha.measure(target, texts, [DraftModel("draft", draft)], (lenience,))
    assert drafted > 300
    error = math.hypot(one.alpha.error, math.sqrt(0.25 / drafted))
    assert abs(accepted / drafted - one.alpha.mean) < 4 * error


def test_unigram_and_bigram_drafters_count_tokens() -> None:
    tokens = [5, 7, 5, 8, 5, 7, 5]
    unigram = Unigram().distributions(tokens, 6, 1.0, 10)
    assert unigram[0].tolist() == [0, 0, 0, 0, 0, 3 / 6, 0, 2 / 6, 1 / 6, 0]
    assert Unigram().distributions(tokens, 6, 0.0, 10)[0, 5] == 1
    bigram = Bigram().distributions([*tokens, 9], 1, 1.0, 10)
    assert not bigram[0].any()  # nothing followed a 5 yet
    assert bigram[2, 7] == 1
    assert bigram[6].tolist() == [0, 0, 0, 0, 0, 0, 0, 2 / 3, 1 / 3, 0]
    repeated = [*range(6), *range(6)]
    for drafter in (NGrams(4), Matches()):
        rows = drafter.distributions(repeated, 6, 1.0, 10)
        assert np.argmax(rows, axis=-1)[-1] == 5
        assert set(rows.sum(axis=-1)) <= {0.0, 1.0}
    # Nothing is kept from one text to the next.
    assert not Bigram().distributions([1, 2], 1, 1.0, 10).any()


def test_alpha_of_unigrams_matches_counts(
    target: LogitsModel, texts: dict[float, list[Text]]
) -> None:
    (one,) = alpha.measure(target, texts[1.0][:2], [Unigram()])
    betas = []
    for text in texts[1.0][:2]:
        rows = target.rows(text.tokens, text.first)
        for i, row in enumerate(rows, start=text.first):
            p = softmax([float(x) for x in row], 1.0)
            counts = Counter(text.tokens[:i])
            betas.append(sum(min(p[token], count / i) for token, count in counts.items()))
    assert one.alpha.mean == pytest.approx(np.mean(betas), abs=1e-6)


def test_probabilities_match_softmax() -> None:
    logits = np.array([[1.0, 3.0, -np.inf], [2.0, 2.0, 0.0]], np.float32)
    assert probabilities(logits, 0.0).tolist() == [[0, 1, 0], [1, 0, 0]]
    for temperature in (0.5, 1.0, 3.0):
        wanted = [softmax([float(x) for x in row], temperature) for row in logits]
        assert probabilities(logits, temperature) == pytest.approx(np.array(wanted))
    assert probabilities(logits, 1e-310).tolist() == [[0, 1, 0], [0.5, 0.5, 0]]


def test_standard_errors_of_alpha_treat_each_text_as_one_observation() -> None:
    """If all tokens of a text agree, there are as many observations as texts."""
    values = np.array([0.1, 0.4, 0.9, 0.2, 0.6])
    estimate = Estimate.of([np.full(100, value) for value in values])
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.error == pytest.approx(values.std(ddof=1) / math.sqrt(5))
    assert str(Estimate(0.5, 0.25)) == "0.500 ± 0.250"
    unequal = Estimate.of([np.ones(30), np.zeros(10)])
    assert unequal.mean == 0.75
    assert math.isnan(Estimate.of([np.ones(3)]).error)


@pytest.mark.parametrize("lenience", [0.0, -1.0, 1.1, math.nan])
def test_bad_lenience_is_refused(
    target: LogitsModel, texts: dict[float, list[Text]], lenience: float
) -> None:
    with pytest.raises(ArgumentError, match="lenience must be more than 0 and at most 1"):
        alpha.measure(target, texts[0.0], [Unigram()], (lenience,))


def test_measuring_alpha_without_texts_is_refused(target: LogitsModel, draft: LogitsModel) -> None:
    drafters: list[Approximation] = [Unigram()]
    with pytest.raises(ArgumentError, match="at least one text"):
        alpha.measure(target, [], drafters)
    with pytest.raises(ArgumentError, match="at least one text"):
        alpha.compare_rules(target, draft, [], "draft")


def test_measuring_alpha_of_a_missing_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no file .*none\.gguf"):
        LogitsModel(tmp_path / "none.gguf", n_ctx=32)


def test_alpha_command_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alpha", *SMALL, "--temp", "0", "1", "--lenience", "1", "0.3", "1"]) == 0
    out = capsys.readouterr().out
    for words in ("unigram", "bigram", "n-grams to 4", "matches", "draft-q8_0.gguf", "v(9)",
                  "(1 - TV) / (1 + TV)", "l = 0.3"):  # fmt: skip
        assert words in out, words
    tables = [line for line in out.splitlines() if line.startswith("|")]
    assert tables
    assert all(line.endswith("|") for line in tables)


def test_alpha_command_measures_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alpha", *SMALL, "--temp", "1", "--speed", "--repeat", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [one["gamma"] for one in result["speeds"]] == [*range(1, 9)] * 2
    assert {one["acceptance"] for one in result["speeds"]} == {"coupled", "rejection"}
    step = result["draft_steps"]["draft-q8_0.gguf"]
    for one in result["speeds"]:
        expected = theory.measured_improvement_factor(one["alpha"], one["gamma"], result["v"], step)
        assert one["expected"] == pytest.approx(expected)
        assert one["measured"] > 0
    assert len(result["v"]) == 9
    assert min(result["v"]) > 0


def test_alpha_command_measures_every_draft_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Callable[[str, str], str]
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("one.gguf", "two.gguf"):
        shutil.copy(BUNDLED_DRAFT, folder / name)
    shutil.copy(BUNDLED_MODEL, folder / "target.gguf")  # not smaller than the target
    write_dense(folder / "stranger.gguf")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    text = write("a.txt", "\n".join(packaged_prompts(["code"])))
    assert main(["alpha", "-md", str(folder), "-f", text, *SMALL, "--temp", "1"]) == 0
    out = capsys.readouterr().out
    assert "one.gguf" in out
    assert "two.gguf" in out
    assert "stranger" not in out
    assert "At T = 1 " in out


def test_alpha_command_compares_weight_types_of_a_draft(
    capsys: pytest.CaptureFixture[str], write: Callable[[str, str], str]
) -> None:
    text = write("a.txt", "\n".join(packaged_prompts(["code"])))
    types = ["--draft-type", "keep", "q4_0", "q8_0"]  # the bundled draft is in q8_0
    assert main(["alpha", *types, "-f", text, *SMALL, "--temp", "0", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["draft_steps"]
    assert list(steps) == ["draft-q8_0.gguf", "draft-q8_0.gguf as Q4_0"]
    assert min(steps.values()) > 0


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    def one(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return one


def test_bad_alpha_options_give_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Callable[[str, str], str]
) -> None:
    (tmp_path / "empty").mkdir()
    write_dense(tmp_path / "stranger.gguf")
    (tmp_path / "latin").write_bytes(b"\xff")
    for options, sentence in (
        (["-m", str(tmp_path / "none.gguf")], "none.gguf"),
        (["-md", str(tmp_path / "stranger.gguf")], "their vocabularies differ"),
        (["-md", str(tmp_path / "empty")], "could draft for"),
        (["-md", str(tmp_path / "none.gguf")], "none.gguf"),
        (["-f", str(tmp_path / "none.txt")], "cannot be read: No such file"),
        (["-f", "\0"], "it is not a path"),
        (["-f", str(tmp_path / "latin")], "it is not UTF-8"),
        (["-f", write("short", "a b c")], "too few for two prompts"),
        (["-n", "8192"], "together must be at most 8192"),
        (["--temp", "-1"], "--temp must be"),
        (["--temp", "nan"], "--temp must be"),
        (["--lenience", "0"], "--lenience must be"),
        (["--speed", "-m", str(BUNDLED_DRAFT)], "one draft model in one type, not 0"),
    ):
        assert main(["alpha", *SMALL, *options]) == 2, options
        error = capsys.readouterr().err
        assert sentence in error, (options, error)
        assert error.count("\n") == 1


def test_a_generated_text_ends_at_the_end_token(tmp_path: Path) -> None:
    path = tmp_path / "scripted.gguf"
    write_scripted_model(path, ["a", "b", "c"])
    with LogitsModel(path, n_ctx=64, **CPU) as model:
        text = model.generate([BOS], 20, temperature=0.0, seed=0)
    assert text == [BOS, FIRST, FIRST + 1, FIRST + 2, EOS]
