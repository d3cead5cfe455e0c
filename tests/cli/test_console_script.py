"""The console script that starts spec-cli."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from prompts import PROMPTS
from specllama.model.bundled import BUNDLED_MODEL

EXACT = ["-kv", "q8_0", "-fa", "on", "-ngl", "0", "-t", "1", "--spec-length", "4"]
PROMPT = PROMPTS["module"]


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
        (["-p", "x", "--port", "80"], "--port is an option of specllama serve, not of this "
         "program; see spec-cli --help."),
        (["--temperatur", "1"], "there is no option --temperatur; did you mean --temperature?; see "
         "spec-cli --help."),
        (["-cnv", "-i"], "-cnv is not supported: spec-cli answers once, specllama chat "
         "converses; leave it out; -i is not supported: "),
        (["-np", "2"], "-np is an option of specllama "),
        (["-m", "llama3", "-p", "x"], "There is no file llama3. Give the path of a GGUF "),
        (["-md", "a/b", "-p", "x"], "There is no file a/b. If it is a model of the Hugging Face "),
        (["x.gguf", "-p", "x"], "unexpected argument x.gguf; give a model with -m x.gguf; see "),
        (["hello"], "unexpected argument 'hello'; give a prompt with -p; see spec-cli --help."),
        (["-p", "x", "-c", "y"], "-c needs a whole number, not "),
        (["--", "x"], "there is no option --; see spec-cli --help."),
        (["-j", "{}", "--grammar-file", "x"], "Give one of --grammar, --grammar-file, -j, "),
        (["-jf", "/nowhere"], "/nowhere cannot be read: No such file or directory."),
        (["-jf", str(path)], "-jf is not valid JSON: "),
        (["-jf", str(long)], "-jf has more than 400000 constants, references followed."),
    ):  # fmt: skip
        process = console_script(*arguments)
        assert process.returncode == 2
        assert process.stderr.startswith(f"spec-cli: {message}"), process.stderr
        assert process.stderr.count("\n") == 1


def test_options_of_llama_cpp_are_translated_or_reported_as_without_effect() -> None:
    model = ["-m", str(BUNDLED_MODEL), "-p", PROMPT, "-n", "8"]
    plain = console_script(*model, "-kv", "q8_0", "--spec-length", "4")
    typed = "-ctk q8_0 -ctv q8_0 --draft-max 4 --jinja -ub 512 -st"
    pasted = console_script(*model, *typed.split())
    assert pasted.returncode == 0, pasted.stderr
    assert pasted.stdout == plain.stdout != ""
    assert pasted.stderr == "spec-cli: --jinja, -ub, -st have no effect.\n"


def test_json_schema_file_option_constrains_the_text(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    text = json.dumps(schema, indent=1).replace("\n", "\r\n")
    (path := tmp_path / "schema.json").write_bytes(text.encode("utf-8-sig"))
    for given in (["-j", json.dumps(schema)], [f"--json-schema-file={path}"], ["-jf", "-"]):
        model = str(BUNDLED_MODEL)
        options = [*EXACT, "-m", model, "-p", PROMPT, "-n", "200"]
        process = console_script(*options, *given, stdin=text)
        assert process.returncode == 0, process.stderr
        assert isinstance(json.loads(process.stdout)["n"], int)
