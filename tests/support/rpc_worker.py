"""RPC servers of llama.cpp on the processor, each in a process of its own. They run what
ggml-rpc-server runs, with the library of the tests.

    python rpc_worker.py HOST:PORT [THREADS]
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import llama_cpp
from typing_extensions import Self

GGML_BACKEND_DEVICE_TYPE_CPU = 0


def has_rpc() -> bool:
    """Return whether llama.cpp was built with RPC."""
    return bool(llama_cpp.llama_supports_rpc())


def free_port() -> int:
    """Return a port of loopback without a server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Worker:
    """A server that runs during a `with` block.

    Attributes:
        endpoint: host:port, as `rpc` accepts it.
    """

    def __init__(self, threads: int = 1, **names: str) -> None:
        """`names` are its environment variables."""
        self._port = free_port()
        self._threads = threads
        self._environment = os.environ | names
        self.endpoint = f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server, also after it was killed, and wait until it accepts connections."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.endpoint, str(self._threads)],
            stdout=subprocess.DEVNULL,
            env=self._environment,
        )
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
                return
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.kill()
                    raise RuntimeError(f"There is no RPC server at {self.endpoint}.") from None
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@contextmanager
def workers(n: int, threads: int = 1) -> Iterator[list[Worker]]:
    """Run so many servers."""
    with ExitStack() as stack:
        yield [stack.enter_context(Worker(threads)) for _ in range(n)]


def main(endpoint: str, threads: str = "1") -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in a C++ program
    folder = os.path.join(os.path.dirname(llama_cpp.__file__), "lib")
    suffix = "dylib" if sys.platform == "darwin" else "so"
    ggml = ctypes.CDLL(os.path.join(folder, f"libggml.{suffix}"))
    rpc = ctypes.CDLL(os.path.join(folder, f"libggml-rpc.{suffix}"))
    llama_cpp.llama_backend_init()
    ggml.ggml_backend_dev_by_type.restype = ctypes.c_void_p
    devices = (ctypes.c_void_p * 1)(ggml.ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU))
    rpc.ggml_backend_rpc_start_server.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.c_void_p,
    ]
    rpc.ggml_backend_rpc_start_server(endpoint.encode(), None, int(threads), 1, devices)


if __name__ == "__main__":
    main(*sys.argv[1:])
