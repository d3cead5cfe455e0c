"""The console script that starts spec-cli."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from processes import run_spec_cli
from prompts import PROMPTS
from specllama.commands.spec_cli import OPTIONS, SWITCHES
from specllama.model.bundled import BUNDLED_MODEL

EXACT = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1", "--spec-length", "4"]
PROMPT = PROMPTS["module"]


def test_console_script_knows_the_same_options() -> None:
    """The console script in front of it knows them, too."""
    lines = run_spec_cli("--help").stdout.decode().splitlines()
    heads = [line[2:].split("  ")[0] for line in lines if line.startswith("  -")]
    switches: set[str] = set()
    others: set[str] = set()
    for head in heads:
        *names, last = head.strip().split(", ")
        last, _, value = last.partition(" ")
        (others if value else switches).update((*names, last))
    assert switches | {"-"} == SWITCHES
    assert others | SWITCHES == OPTIONS


def console_script(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    script = "from specllama_light.command import spec_cli; spec_cli()"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, input=stdin
    )


def test_console_script_refuses_bad_combinations_with_one_sentence(tmp_path: Path) -> None:
    (path := tmp_path / "schema.json").write_text("no")
    (long := tmp_path / "long.json").write_text(json.dumps({"enum": list(range(200_000))}))
    for arguments, message in (
        (["-m", "x.gguf", "-hf", "a/b"], "Give the model with -m or with -hf, not both."),
        (["-hfd", "a/b", "-md", "x"], "Give the draft model with -md or with -hfd, not both."),
        (["-p", "x", "-ctk", "q8_0"], "-ctk is no option here: say -kv TYPE, for keys and values "
         "alike; see spec-cli --help."),
        (["--temperatur", "1"], "there is no option --temperatur; did you mean --temperature?; see "
         "spec-cli --help."),
        (["--no-escape"], "--no-escape is no option here: what it asks for is always so; leave it "
         "out; see spec-cli --help."),
        (["-cnv"], "-cnv is no option here: spec-cli continues a text, specllama chat converses; "
         "leave it out; see spec-cli --help."),
        (["-p=hi"], "the value of -p stands behind a blank, not behind =; see spec-cli --help."),
        (["--", "x"], "there is no option --; see spec-cli --help."),
        # What would help there is no option of this program's.
        (["--reasoning"], "there is no option --reasoning; see spec-cli --help."),
        (["-j", "{}", "--grammar-file", "x"], "Give one of --grammar, --grammar-file, -j, "),
        (["-jf", "/nowhere"], "/nowhere cannot be read: No such file or directory."),
        (["-jf", str(path)], "-jf is not valid JSON: "),
        (["-jf", str(long)], "-jf has more than 400000 constants, references followed."),
    ):  # fmt: skip
        process = console_script(*arguments)
        assert process.returncode == 2
        assert process.stderr.startswith(f"spec-cli: {message}"), process.stderr
        assert process.stderr.count("\n") == 1


def test_json_schema_file_constrains_the_text(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    text = json.dumps(schema, indent=1).replace("\n", "\r\n")
    (path := tmp_path / "schema.json").write_bytes(text.encode("utf-8-sig"))
    for given in (["-j", json.dumps(schema)], [f"--json-schema-file={path}"], ["-jf", "-"]):
        model = str(BUNDLED_MODEL)
        options = [*EXACT, "-m", model, "-p", PROMPT, "-n", "200"]
        process = console_script(*options, *given, stdin=text)
        assert process.returncode == 0, process.stderr
        assert isinstance(json.loads(process.stdout)["n"], int)
