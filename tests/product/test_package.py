"""The installed package is complete and consistent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest
import specllama
from specllama import SpecSession, _core, list_devices

PACKAGE = Path(_core.__file__).parent


def mapped_libraries() -> set[str]:
    names = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return {name for name in names if "/libllama." in name}


@pytest.mark.skipif(
    sys.platform == "darwin", reason="a wheel has two files of it, and dyld maps both"
)
def test_only_one_libllama_is_mapped() -> None:
    llama_cpp.llama_backend_init()
    with SpecSession(n_threads=1, n_gpu_layers=0) as session:
        session.generate("x", max_tokens=1)
        assert len(mapped_libraries()) == 1
    assert llama_cpp.llama_version().decode() == _core.llama_cpp_version


def test_another_version_of_llama_cpp_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp/__init__.py").touch()
    metadata = tmp_path / "llama_cpp_python-0.0.1.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: llama_cpp_python\nVersion: 0.0.1\n")
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport specllama"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    last = process.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: specllama was built against llama-cpp-python ")
    assert "but 0.0.1 is installed; run: pip install llama-cpp-python==" in last


def test_the_package_has_its_programs_models_and_types() -> None:
    for name in ("bin/spec-cli", "models/target-q8_0.gguf", "models/draft-q8_0.gguf"):
        assert (PACKAGE / name).is_file(), name
    source = Path(specllama.__file__).parent
    for name in ("py.typed", "_core/__init__.pyi", "_core/plan.pyi"):
        assert (source / name).is_file(), name


def test_public_names_are_documented() -> None:
    for name in specllama.__all__:
        if name != "__version__":
            assert getattr(specllama, name).__doc__, name


def test_list_devices_includes_the_cpu() -> None:
    devices = list_devices()
    assert any(device.name == "CPU" for device in devices)
    assert all(device.memory_free <= device.memory_total for device in devices)


def test_the_command_without_arguments_prints_the_help() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "specllama", "--help"], capture_output=True, text=True, check=True
    )
    assert "bench" in process.stdout
    bare = subprocess.run(
        [sys.executable, "-m", "specllama"], capture_output=True, text=True, check=True
    )
    assert bare.stdout == process.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["models"], ["--help"], ["--version"], ["corpus", "-h"]])
def test_a_full_output_device_gives_one_sentence(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "specllama", *arguments]
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert process.returncode == 1
    assert process.stderr.startswith("specllama: The result cannot be written to standard output: ")
    assert process.stderr.count("\n") == 1
