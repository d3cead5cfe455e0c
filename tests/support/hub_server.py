"""A small Hugging Face Hub on loopback, with what huggingface_hub needs for a download."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(ThreadingHTTPServer):
    """Serves repositories; everything may be changed while it runs.

    Attributes:
        repos: Files of each repository, path to content.
        gated: Repositories that list their files but refuse downloads.
        token: The only accepted token, if a request has one.
        missing: Files that are listed but cannot be downloaded.
        breaks: Numbers of bytes after which the next downloads of a file break, path to a list.
        requests: All requests, as (method, path, Range header).
    """

    daemon_threads = True

    def __init__(self, repos: dict[str, dict[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repos = repos
        self.gated: set[str] = set()
        self.token = "hf_valid"
        self.missing: set[str] = set()
        self.breaks: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str, str | None]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def downloads(self) -> list[tuple[str, str | None]]:
        """Return all downloads: file and Range header."""
        return [
            (path.rsplit("/", 1)[-1], span)
            for method, path, span in self.requests
            if method == "GET" and "/resolve/" in path
        ]

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that disconnects


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        span = self.headers.get("Range")
        self.server.requests.append((self.command, path, span))
        if self.headers.get("Authorization", bearer := f"Bearer {self.server.token}") != bearer:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/revision/main)?", path):
            self._give_info(match[1])
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            self._give_file(match[1], match[2], span)
        else:
            self._refuse(404, "")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass

    def _refuse(self, status: int, code: str, message: str = "no") -> None:
        self._begin(status, b"{}", {"X-Error-Code": code, "X-Error-Message": message})

    def _begin(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _give_info(self, repo: str) -> None:
        files = self.server.repos.get(repo)
        if files is None:
            return self._refuse(404, "RepoNotFound")
        siblings = [{"rfilename": name, "size": len(files[name])} for name in files]
        info = {"id": repo, "modelId": repo, "sha": COMMIT, "siblings": siblings, "tags": []}
        return self._begin(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _give_file(self, repo: str, name: str, span: str | None) -> None:
        if repo not in self.server.repos:
            return self._refuse(404, "RepoNotFound")
        if repo in self.server.gated:
            return self._refuse(403, "GatedRepo")
        content = self.server.repos[repo].get(name)
        if content is None or name in self.server.missing:
            return self._refuse(404, "EntryNotFound")
        headers = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "Accept-Ranges": "bytes",
        }
        status, begin = 200, 0
        if span:
            status, begin = 206, int(span.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        body = content[begin:]
        if self.command == "GET" and self.server.breaks.get(name):
            headers["Content-Length"] = str(len(body))
            body = body[: self.server.breaks[name].pop(0)]
            self.close_connection = True
        return self._begin(status, body, headers)


@contextmanager
def serve(repos: dict[str, dict[str, bytes]]) -> Iterator[HubServer]:
    """Run a server in a thread."""
    with HubServer(repos) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
