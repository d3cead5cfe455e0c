"""The executable spec-cli: options and output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import specllama
from heads import write_perfect_pair
from processes import run_spec_cli
from prompts import PROMPTS
from specllama import SpecSession
from specllama.commands.spec_cli import executable

EXACT = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1", "--spec-length", "4"]
PROMPT = PROMPTS["module"]


def test_spec_cli_writes_only_the_text_to_stdout(open_session: Callable[..., SpecSession]) -> None:
    expected = open_session().generate(PROMPT, max_tokens=60).text.encode()
    for extra in ([], ["--no-spec"], ["--draft", "none"], ["--spec-length", "16"], ["--stats"]):
        process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", *extra)
        assert process.returncode == 0, process.stderr
        assert process.stdout == expected, extra
        assert (process.stderr == b"") == (extra != ["--stats"])


def test_a_windows_prompt_file_loses_its_byte_order_mark_and_gets_a_note(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"def f(x):\n    return")
    plain = run_spec_cli(*EXACT, "-f", str(path), "-n", "8")
    path.write_bytes(b"\xef\xbb\xbfdef f(x):\n    return\r\n")
    marked = run_spec_cli(*EXACT, "-f", str(path), "-n", "8")
    assert (marked.stdout, marked.stderr) == (plain.stdout, plain.stderr)
    path.write_bytes(b"def f(x):\r\n    return")
    noted = run_spec_cli(*EXACT, "-f", str(path), "-n", "8")
    assert b"Windows line ends" in noted.stderr


def test_spec_cli_reads_prompts_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    expected = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "20").stdout
    (path := tmp_path / "prompt.txt").write_text(PROMPT + "\n")
    assert run_spec_cli(*EXACT, "-f", str(path), "-n", "20").stdout == expected
    for arguments in (["-"], ["-f", "-"], []):
        assert (
            run_spec_cli(*EXACT, *arguments, "-n", "20", stdin=PROMPT.encode() + b"\n").stdout
            == expected
        )


def test_spec_cli_without_arguments_completes_the_built_in_prompt() -> None:
    process = run_spec_cli()
    assert process.returncode == 0, process.stderr
    assert len(process.stdout.decode()) > 100


def test_stats_flag_prints_a_table() -> None:
    table = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "50", "--stats").stderr.decode()
    assert "generated      50 tokens" in table
    for word in ("prompt", "rounds", "drafted", "accepted by position", "verify", "total"):
        assert word in table


def test_json_flag_prints_chunks_and_a_result(open_session: Callable[..., SpecSession]) -> None:
    expected = open_session().generate(PROMPT, max_tokens=60)
    process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", "--draft", "ngram", "--json")
    *chunks, result = map(json.loads, process.stdout.decode().splitlines())
    assert all(chunk["type"] == "chunk" for chunk in chunks)
    assert "".join(chunk["text"] for chunk in chunks) == expected.text
    assert [chunk["token"] for chunk in chunks] == expected.tokens
    assert result["type"] == "result"
    assert result["finish_reason"] == "length"
    for name, value in expected.stats.to_dict().items():
        if name not in ("seed", "seconds", "tokens_per_second", "prompt_tokens_per_second"):
            if isinstance(value, float):
                assert result["stats"][name] == pytest.approx(value, rel=1e-5), name
            else:
                assert result["stats"][name] == json.loads(json.dumps(value)), name
    assert set(result["stats"]["seconds"]) == set(expected.stats.to_dict()["seconds"])  # type: ignore[call-overload]


def test_stop_flag_ends_the_text() -> None:
    whole = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60").stdout
    stop = whole[20:26].decode()
    process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", "--stop", stop, "-r", "never this")
    assert process.stdout == whole[: whole.index(stop.encode())]


def test_bundled_draft_model_drafts_for_the_bundled_target_by_default(
    open_session: Callable[..., SpecSession],
) -> None:
    """Unless --draft or --no-spec says otherwise."""

    def drafted(*arguments: str) -> int:
        process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "20", "--json", *arguments)
        stats = json.loads(process.stdout.decode().splitlines()[-1])["stats"]
        return int(stats["by_drafter"]["model"][0])

    expected = open_session(draft="auto").generate(PROMPT, max_tokens=20).stats
    assert drafted() == drafted("--speculative-decoding") == expected.by_drafter["model"][0] > 0
    assert drafted("--draft", "ngram") == drafted("--no-spec") == 0


def test_acceptance_and_grammar_flags_match_the_session(
    tmp_path: Path, open_session: Callable[..., SpecSession]
) -> None:
    grammar = 'root ::= ([a-z]+ "\\n"){3}'
    path = tmp_path / "words.gbnf"
    path.write_text(grammar)
    expected = open_session(draft="auto").generate(
        PROMPT, temperature=1.0, seed=5, acceptance="rejection", grammar=grammar
    )
    arguments = ["--temp", "1", "-s", "5", "--acceptance", "rejection"]
    for given in (["--grammar-file", str(path)], ["--grammar", grammar]):
        process = run_spec_cli(*EXACT, "-p", PROMPT, *arguments, *given)
        assert process.stdout.decode() == expected.text
    assert len(expected.text.splitlines()) == 3


def test_sampling_flags_match_the_session(open_session: Callable[..., SpecSession]) -> None:
    expected = open_session().generate(
        PROMPT, max_tokens=60, temperature=0.9, top_k=50, top_p=0.95, min_p=0.01,
        repeat_penalty=1.1, presence_penalty=0.1, frequency_penalty=0.2, repeat_last_n=32, seed=7,
    )  # fmt: skip
    flags = "--temp 0.9 --top-k 50 --top-p 0.95 --min-p 0.01 --repeat-penalty 1.1"
    more = "--presence-penalty 0.1 --frequency-penalty 0.2 --repeat-last-n 32 --seed 7"
    for extra in ([], ["--no-spec"]):
        process = run_spec_cli(
            *EXACT, "-p", PROMPT, "-n", "60", *flags.split(), *more.split(), *extra
        )
        assert process.stdout.decode() == expected.text


def test_truncation_and_dry_flags_match_the_session(
    open_session: Callable[..., SpecSession],
) -> None:
    options: dict[str, Any] = {
        "top_n_sigma": 2.0, "typical_p": 0.95, "xtc_probability": 0.5, "xtc_threshold": 0.05,
        "dry_multiplier": 3.0, "dry_base": 1.5, "dry_allowed_length": 1, "dry_penalty_last_n": 40,
    }  # fmt: skip
    flags = ["--temp", "0.9", "--seed", "7"]
    for name, value in options.items():
        flags += ["--" + name.replace("_", "-"), str(value)]
    one, two = ["--dry-sequence-breaker", r"e\x73"], ["--dry-sequence-breaker", "("]
    texts = set()
    for breakers, more in (
        (None, ["--dry-sequence-breaker", "none"]),
        (["\n", ":", '"', "*"], []),
        (["es", "("], ["-e", *one, *two]),
    ):
        expected = open_session().generate(
            PROMPT, max_tokens=60, temperature=0.9, seed=7, dry_sequence_breakers=breakers,
            **options,
        )  # fmt: skip
        process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", *flags, *more)
        assert process.stdout.decode() == expected.text
        texts.add(expected.text)
    assert len(texts) == 3


def test_ignore_eos_flag_generates_past_the_end(open_session: Callable[..., SpecSession]) -> None:
    asked: dict[str, Any] = {"max_tokens": 300, "temperature": 1.3, "seed": 2}
    ended = open_session().generate(PROMPT, **asked)
    assert ended.finish_reason == "stop"
    expected = open_session().generate(PROMPT, ignore_eos=True, **asked)
    assert expected.stats.generated_tokens == 300
    flags = ["-n", "300", "--temp", "1.3", "-s", "2", "--ignore-eos"]
    assert run_spec_cli(*EXACT, "-p", PROMPT, *flags).stdout.decode() == expected.text


@pytest.mark.parametrize("when", ["on", "off", "auto"])
def test_color_flag_colours_accepted_tokens(when: str) -> None:
    process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", "--color", when)
    coloured = when == "on"  # a pipe is not a terminal
    assert (b"\x1b[32m" in process.stdout) == coloured
    assert (b"drafted" in process.stderr) == coloured  # the legend
    plain = process.stdout.replace(b"\x1b[32m", b"").replace(b"\x1b[0m", b"")
    assert plain == run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60").stdout


def test_md_flag_drafts_with_a_model_and_changes_no_token(bundled_model: Path) -> None:
    expected = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60").stdout
    draft = str(bundled_model.with_name("draft-q8_0.gguf"))
    for extra in ([], ["--spec-length", "2"], ["--no-spec"]):
        process = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60", "-md", draft, *extra)
        assert process.stdout == expected, process.stderr
    *_, result = run_spec_cli(*EXACT, "-p", PROMPT, "-md", draft, "--json").stdout.splitlines()
    assert json.loads(result)["stats"]["draft_decoded_tokens"] > 0


def test_spec_cli_prints_help_version_and_devices() -> None:
    text = run_spec_cli("--help").stdout.decode()
    for option in (
        "-m",
        "-hf",
        "-p",
        "-f",
        "-n",
        "-c",
        "-t",
        "-ngl",
        "--draft",
        "--spec-length",
        "--no-spec",
        "--stats",
        "--json",
        "--color",
        "--list-devices",
        "--version",
    ):
        assert option in text
    assert max(map(len, text.splitlines())) <= 100
    assert specllama.__version__ in run_spec_cli("--version").stdout.decode()
    assert "CPU" in run_spec_cli("--list-devices").stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "There is no option --nonsense"),
        (["-n"], "-n needs a value"),
        (["-n=many"], '-n needs a whole number, not "many"'),
        (["-n", "many"], '-n needs a whole number, not "many"'),
        (["-n", "99999999999999"], "-n cannot be 99999999999999"),
        (["-n", "-2"], "-n must be"),
        (["-n", "100000"], "-n is 100000, but after the prompt"),
        (["-c", "-5"], "-c must be"),
        (["-t", "-1"], "-t must be"),
        (["-ngl", "-7"], "-ngl must be"),
        (["--spec-length", "0"], "--spec-length must be from 1 to 64"),
        (["--spec-length=65"], "--spec-length must be from 1 to 64"),
        (["--spec-length", "many"], '--spec-length needs auto or a whole number, not "many"'),
        (["--spec-tree", "on"], '--spec-tree needs auto, off or a whole number, not "on"'),
        (["--logprobs", "2"], "--logprobs needs --json"),
        (["--draft", "magic"], "--draft must be auto, mtp, ngram or none"),
        (["--color", "red"], "--color must be auto, on or off"),
        (["--no-spec=1"], "takes no value"),
        (["-hf", "a/b"], "-hf needs the spec-cli that pip installs"),
        (["--hf-repo-draft=a/b"], "download the model and give its path with -m or -md"),
        (["-kv", "q1"], "-kv must be one of"),
        (["--temp", "hot"], '--temp needs a number, not "hot"'),
        (["--temp", "-1"], "--temp must be 0 or more (0: greedy), not -1"),
        (["--temp", "nan"], "--temp must be"),
        (["--top-p", "-1"], "--top-p must be from 0 to 1"),
        (["--acceptance", "all"], "--acceptance must be coupled or rejection"),
        (["--lenience", "0.5"], '--lenience requires the acceptance rule "rejection"'),
        (["--grammar", ""], "--grammar needs a grammar, not an empty text"),
        (["--grammar", "x", "--grammar-file", "y"], "as a text or in a file, not both"),
        (["-j", "{}"], "-j needs the spec-cli that pip installs"),
        (["-ngld", "few"], '-ngld needs auto, all or a whole number, not "few"'),
        (["--grammar-file", "/no/such"], "There is no grammar file /no/such"),
        (["--grammar-file", "/dev/null"], "The grammar file /dev/null is empty"),
        (["-s", "-2"], "-s needs a whole number from -1"),
        (["hello"], '"hello" is not an option'),
        (["-p", ""], "The prompt is empty"),
        (["-p", "x", "-f", "y"], "not both"),
        (["-p", "x", "-md", "/no/such.gguf"], "There is no file /no/such.gguf"),
        (["-p", "x", "-m", ""], "-m is empty; give a value, or leave it out"),
        (["-f", ""], "There is no prompt file"),
        (["-f", "/no/such/file"], "There is no prompt file /no/such/file"),
        (["-f", "/"], "is a directory"),
        (["-f", "/dev/zero"], "The prompt file /dev/zero has more than 100 MB; give a shorter"),
        (["--grammar-file", "/dev/zero"], "The grammar file /dev/zero has more than 100 MB"),
        (["-m", "/no/such.gguf", "-p", "x"], "There is no file /no/such.gguf"),
        (["-m", "/n_ctx/draft_model.gguf", "-p", "x"], "There is no file /n_ctx/draft_model.gguf"),
        (
            ["-p", "x", "--json", "--logprobs", "500"],
            "--logprobs must be from -1 to 100 (-1: none), not 500",
        ),
        (["-m", "/no/such.gguf"], "There is no prompt"),
        (["-p", "x", "-ngl", "-2"], "-ngl must be -1 or more (-1: all that fit), not -2"),
        (["-p", "x", "-ngld", "-2"], "-ngld must be -1 or more (-1: all that fit), not -2"),
        (["-p", "x", "-ngl", "-2", "-ngld", "0"], "-ngl must be"),
        (["-p", "x", "-ngl", "0", "-devd", "GPU9"], 'There is no device "GPU9"'),
        (["-p", "word " * 3000], "leaves no room in a context of"),
    ],
)
def test_bad_spec_cli_arguments_give_exit_code_2_and_one_sentence(
    arguments: list[str], message: str
) -> None:
    process = run_spec_cli(*arguments)
    error = process.stderr.decode()
    assert process.returncode == 2
    assert process.stdout == b""
    assert message in error
    assert error.startswith("spec-cli: ")
    assert len(error.strip().splitlines()) == 1


def test_an_unreadable_prompt_file_gives_exit_code_2(tmp_path: Path) -> None:
    (loop := tmp_path / "loop").symlink_to(loop)
    for arguments in (["-f"], ["-p", "x", "--grammar-file"], ["-p", "x", "-m"]):
        process = run_spec_cli(*arguments, str(loop))
        assert process.returncode == 2
        assert process.stderr.endswith(b": Too many levels of symbolic links.\n")


def test_endless_standard_input_is_refused() -> None:
    with Path("/dev/zero").open("rb") as endless:
        process = subprocess.run(
            [executable(), "-f", "-"], stdin=endless, capture_output=True, timeout=120, check=False
        )
    assert process.returncode == 2
    assert process.stderr == b"spec-cli: The prompt has more than 100 MB; give a shorter one.\n"


def test_e_flag_reads_escapes_in_prompts() -> None:
    """As in llama.cpp's programs; without -e, escapes stay as they are."""
    expected = run_spec_cli(*EXACT, "-p", 'a\tb\\c\n"A\\q', "-n", "5").stdout
    typed = r"a\tb\\c\n\"\x41\q"
    assert run_spec_cli(*EXACT, "-e", "-p", typed, "-n", "5").stdout == expected
    assert run_spec_cli(*EXACT, "-p", typed, "-n", "5").stdout != expected
    # Incomplete and unknown escapes stay: not enough digits, no digits, nothing after the
    # backslash.
    expected = run_spec_cli(*EXACT, "-p", "\r'\\xzz\\x4\\", "-n", "5").stdout
    typed = r"\r\'\xzz\x4" + "\\"
    assert run_spec_cli(*EXACT, "-e", "-p", typed, "-n", "5").stdout == expected
    whole = run_spec_cli(*EXACT, "-p", PROMPT, "-n", "60").stdout
    line, newline, _ = whole.partition(b"\n")
    assert newline
    assert run_spec_cli(*EXACT, "-e", "-p", PROMPT, "-n", "60", "-r", r"\n").stdout == line


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ok \xff no", "not valid UTF-8 (at byte 3)"),
        (b"\xf0\x9f\x9a", "at byte 0"),
        (b"", "empty"),
    ],
)
def test_a_bad_prompt_on_standard_input_is_refused(data: bytes, message: str) -> None:
    process = run_spec_cli(stdin=data)
    assert process.returncode == 2
    assert message in process.stderr.decode()


def test_md_flag_accepts_a_head(tmp_path: Path) -> None:
    target, head = write_perfect_pair(tmp_path, shares=True)
    process = run_spec_cli(
        *EXACT, "-m", str(target), "-md", str(head), "-p", "\n", "-n", "20", "--json"
    )
    assert process.returncode == 0, process.stderr
    stats = json.loads(process.stdout.decode().splitlines()[-1])["stats"]
    assert stats["by_drafter"]["model"][0] > 0 == stats["drafter_errors"]
    refused = run_spec_cli(*EXACT, "-m", str(target), "--draft", "mtp", "-p", "\n")
    assert refused.returncode == 2
    assert b"no layers of multi-token prediction" in refused.stderr
