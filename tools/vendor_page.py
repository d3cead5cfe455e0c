"""Update the libraries of the server's page from npm.

    tools/vendor_page.py                        check the files against vendor.json
    tools/vendor_page.py markdown-it@14.1.0     fetch a version with `npm pack`, which checks it
    tools/vendor_page.py markdown-it-14.1.0.tgz use a file that `npm pack` wrote

Writes the files and their licences to the page's folder `vendor`, and the versions and hashes to
`vendor/vendor.json` and `index.html`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parent.parent / "python/specllama/server/web"


def integrity(content: bytes) -> str:
    """Return the hash of a file as a value of the attribute `integrity`."""
    return "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()


def problems(web: Path = WEB) -> list[str]:
    """Return the problems of a page's files, each as a sentence."""
    page = (web / "index.html").read_text(encoding="utf-8")
    found = []
    for name, library in _libraries(web).items():
        script = web / "vendor" / library["script"]
        expected = integrity(script.read_bytes())
        if library["integrity"] != expected:
            found.append(f"{script.name} of {name} does not match the hash in vendor.json.")
        if f'src="/page/vendor/{script.name}" integrity="{expected}"' not in page:
            found.append(f"{script.name} of {name} does not match the hash in index.html.")
        if not (web / "vendor" / library["license_file"]).is_file():
            found.append(f"{library['license_file']} of {name} is missing.")
    return found


def renew(archive: Path, web: Path = WEB) -> str:
    """Update a library from an npm archive; return its name and version."""
    libraries = _libraries(web)
    with tarfile.open(archive) as tar:
        about = json.loads(_content(tar, "package.json"))
        name = about["name"]
        if name not in libraries:
            raise SystemExit(f"{name} is not one of the page's libraries: {', '.join(libraries)}.")
        library = libraries[name]
        script = _content(tar, library["path"])
        license_text = _content(tar, "LICENSE")
    library |= {
        "version": about["version"],
        "license": about["license"],
        "integrity": integrity(script),
    }
    (web / "vendor" / library["script"]).write_bytes(script)
    (web / "vendor" / library["license_file"]).write_bytes(license_text)
    table = json.dumps(libraries, indent=2) + "\n"
    (web / "vendor/vendor.json").write_text(table, encoding="utf-8")
    page = web / "index.html"
    text = re.sub(
        rf'(/page/vendor/{re.escape(library["script"])}" integrity=")[^"]*',
        lambda match: match[1] + library["integrity"],
        page.read_text(encoding="utf-8"),
    )
    page.write_text(text, encoding="utf-8")
    return f"{name} {about['version']}"


def _libraries(web: Path) -> dict[str, dict[str, Any]]:
    libraries: dict[str, dict[str, Any]] = json.loads((web / "vendor/vendor.json").read_bytes())
    return libraries


def _content(tar: tarfile.TarFile, path: str) -> bytes:
    try:
        file = tar.extractfile(f"package/{path}")
    except KeyError:
        file = None
    if file is None:
        raise SystemExit(f"The archive has no file {path}; correct `path` in vendor.json.")
    return file.read()


def main(wanted: list[str]) -> int:
    """Update the given libraries and check all of them; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        for one in wanted:
            archive = Path(one)
            if archive.suffix != ".tgz":
                subprocess.run(["npm", "pack", one], cwd=folder, check=True, stdout=sys.stderr)
                archive = max(Path(folder).glob("*.tgz"), key=lambda path: path.stat().st_mtime_ns)
            print(renew(archive))
    found = problems()
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
