"""Downloads of images from a loopback server that plays a public one."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from specllama.server.error import ApiError
from specllama.server.media import download
from specllama.server.media.download import MOST_BYTES, Downloads

PUBLIC = "93.184.216.34"


class Site:
    """A server on loopback.

    Attributes:
        port: Its port.
        asked: The requested paths, with their hosts.
        names: The addresses of host names, one list for each look-up. The last list stays.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port: int = server.server_address[1]
        self.asked: list[str] = []
        self.names: dict[str, list[list[str]]] = {}
        self.connected: list[str] = []

    async def looked_up(self, host: str, port: int) -> list[str]:
        found = self.names.get(host)
        if found is None:
            return [host]  # an IP address resolves to itself
        return found.pop(0) if len(found) > 1 else found[0]


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.asked.append(f"{self.headers['Host']}{self.path}")
            name, _, rest = self.path[1:].partition("/")
            if name == "to":
                self.send_response(302)
                self.send_header("Location", rest.replace("PORT", str(found.port)))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = b"x" * (MOST_BYTES + 1) if name == "large" else b"image"
            self.send_response(404 if name == "missing" else 200)
            if name == "endless":
                self.end_headers()
                ended.wait(30)
                return
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *args: None  # type: ignore[method-assign]  # connections cut off
    found = Site(server)
    found.names["site.example"] = [[PUBLIC]]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(download, "looked_up", found.looked_up)

    connect = socket.socket.connect

    def redirected(self: socket.socket, address: object) -> None:
        assert isinstance(address, tuple)
        found.connected.append(address[0])
        connect(self, ("127.0.0.1", address[1]) if address[0] == PUBLIC else address)

    # anyio connects with the event loop, which passes the address to the socket.
    async def sock_connect(
        self: asyncio.AbstractEventLoop, sock: socket.socket, address: tuple[str, int]
    ) -> None:
        sock.setblocking(True)
        redirected(sock, address)
        sock.setblocking(False)

    monkeypatch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", sock_connect)
    yield found
    ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


def image(url: str) -> bytes:
    async def run() -> bytes:
        found = await Downloads().images({url: "messages[0].image_url"})
        return found[url]

    return asyncio.run(run())


def refusal(url: str) -> str:
    with pytest.raises(ApiError) as caught:
        image(url)
    assert caught.value.status == 400
    assert caught.value.param == "messages[0].image_url"
    return str(caught.value)


def test_an_image_is_downloaded_from_the_address_that_was_checked(site: Site) -> None:
    # A second look-up would return another address.
    site.names["site.example"] = [[PUBLIC], ["127.0.0.1"]]
    assert image(f"http://site.example:{site.port}/a.png?b=c") == b"image"
    assert site.connected == [PUBLIC]
    assert site.asked == [f"site.example:{site.port}/a.png?b=c"]


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["::1"], ["10.0.0.1"], ["169.254.169.254"], [PUBLIC, "127.0.0.1"], []],
)
def test_a_host_name_with_a_private_address_is_refused(site: Site, addresses: list[str]) -> None:
    site.names["inside.example"] = [addresses]
    assert "the address is not public" in refusal(f"http://inside.example:{site.port}/")
    assert site.connected == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"])
def test_a_private_address_is_refused(site: Site, host: str) -> None:
    assert "the address is not public" in refusal(f"http://{host}:{site.port}/")
    assert site.connected == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "localhost"])
def test_other_spellings_of_loopback_are_refused(host: str) -> None:
    assert "the address is not public" in refusal(f"http://{host}/")


def test_redirects_are_followed_and_checked(site: Site) -> None:
    base = f"http://site.example:{site.port}"
    assert image(f"{base}/to/http://site.example:PORT/a.png") == b"image"
    assert image(f"{base}/to//a.png") == b"image"  # relative
    n_connected = len(site.connected)
    for location, said in (
        ("http://127.0.0.1:PORT/", "the address is not public"),
        ("http://169.254.169.254/latest/meta-data", "the address is not public"),
        ("file:///etc/passwd", "must be a data URL or an address"),
        ("gopher://example.com/", "must be a data URL or an address"),
    ):
        assert said in refusal(f"{base}/to/{location}")
    assert site.connected[n_connected:] == [PUBLIC] * 4


def test_too_many_redirects_are_refused(site: Site) -> None:
    site_url = f"http://site.example:{site.port}"
    path = "/to/" * 20 + "a"
    assert "redirects more than 3 times" in refusal(site_url + path)


def test_an_image_that_is_too_large_is_refused(site: Site) -> None:
    assert f"more than {MOST_BYTES} bytes" in refusal(f"http://site.example:{site.port}/large")


def test_an_error_status_of_the_host_is_refused(site: Site) -> None:
    assert "answers 404" in refusal(f"http://site.example:{site.port}/missing")


def test_a_stalled_download_times_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SECONDS", 0.5)
    assert "took more than" in refusal(f"http://site.example:{site.port}/endless")


def test_an_unreachable_host_is_an_error(site: Site) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "cannot be reached" in refusal(f"http://site.example:{port}/")


def test_an_answer_that_is_not_http_is_an_error(site: Site, free_text: Callable[[], int]) -> None:
    assert "cannot be reached" in refusal(f"http://site.example:{free_text()}/")


@pytest.fixture
def free_text() -> Iterator[Callable[[], int]]:
    """Starts a server that does not speak HTTP; returns its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    thread = threading.Thread(target=answer)

    def start() -> int:
        thread.start()
        port: int = listening.getsockname()[1]
        return port

    yield start
    thread.join()
    listening.close()
