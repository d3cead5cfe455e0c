"""The libraries of the page: their files, hashes, licences, and the script that renews them."""

from __future__ import annotations

import importlib.resources
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from folders import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import vendor_page

LIBRARIES = json.loads((vendor_page.WEB / "vendor/vendor.json").read_bytes())


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A copy of the page."""
    return Path(shutil.copytree(vendor_page.WEB, tmp_path / "web"))


def archive(path: Path, name: str, **files: str) -> Path:
    """Write an archive in npm's format."""
    about = {"name": name, "version": "99.1.2", "license": "MIT"}
    with tarfile.open(path, "w:gz") as tar:
        for file, text in {"package.json": json.dumps(about), **files}.items():
            info = tarfile.TarInfo(f"package/{file}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def test_hashes_match_the_files() -> None:
    assert vendor_page.problems() == []
    script = ROOT / "tools/vendor_page.py"
    assert subprocess.run([sys.executable, script], check=False).returncode == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_files_name_their_versions_and_licences_are_installed(name: str) -> None:
    library = LIBRARIES[name]
    installed = importlib.resources.files("specllama.server").joinpath("web/vendor")
    script = installed.joinpath(library["script"]).read_bytes()
    assert vendor_page.integrity(script) == library["integrity"]
    assert library["version"].encode() in script[:300]
    license_text = installed.joinpath(library["license_file"]).read_text(encoding="utf-8")
    assert len(license_text) > 900


def test_a_changed_file_is_found(web: Path) -> None:
    (web / "vendor/purify.min.js").write_text("alert(1)")
    assert len(vendor_page.problems(web)) == 2


def test_the_script_renews_a_library_and_its_hashes(web: Path, tmp_path: Path) -> None:
    files = {"dist/purify.min.js": "// new", "LICENSE": "new terms"}
    given = archive(tmp_path / "new.tgz", "dompurify", **files)
    assert vendor_page.renew(given, web) == "dompurify 99.1.2"
    assert vendor_page.problems(web) == []
    assert (web / "vendor/purify.min.js").read_text() == "// new"
    assert (web / "vendor/dompurify.LICENSE").read_text() == "new terms"
    renewed = json.loads((web / "vendor/vendor.json").read_bytes())
    assert renewed["dompurify"]["version"] == "99.1.2"
    assert {**renewed, "dompurify": 0} == {**LIBRARIES, "dompurify": 0}


def test_the_script_refuses_other_libraries_and_other_archives(web: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="left-pad is not one of the page's libraries"):
        vendor_page.renew(archive(tmp_path / "a.tgz", "left-pad"), web)
    with pytest.raises(SystemExit, match=r"no file dist/purify\.min\.js"):
        vendor_page.renew(archive(tmp_path / "b.tgz", "dompurify", LICENSE="x"), web)
