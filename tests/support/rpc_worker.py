"""RPC servers of llama.cpp's, each a process of its own on the processor: what ggml-rpc-server
runs, out of the library that the tests run on.

    python rpc_worker.py HOST:PORT [THREADS]
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import llama_cpp

GGML_BACKEND_DEVICE_TYPE_CPU = 0


def has_rpc() -> bool:
    """Whether llama.cpp was built with RPC."""
    return bool(llama_cpp.llama_supports_rpc())


def free_port() -> int:
    """A port of loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Worker:
    """A server, and its end.

    Attributes:
        endpoint: host:port, as `rpc` takes it.
    """

    def __init__(self, threads: int = 1) -> None:
        self.endpoint = f"127.0.0.1:{free_port()}"
        self._process = subprocess.Popen(
            [sys.executable, __file__, self.endpoint, str(threads)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # It says what it is before it listens, and nothing when it does: asked too soon, it is not
        # there.
        end = time.monotonic() + 60
        host, _, port = self.endpoint.partition(":")
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=5).close()
                return
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"No RPC server: {self.stop()}") from None
                time.sleep(0.05)

    def kill(self) -> None:
        """End it as a machine does that loses its power, but for what the system says for it."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> str:
        """End it; what it has said."""
        self._process.kill()
        return self._process.communicate()[0]


@contextmanager
def workers(n: int, threads: int = 1) -> Iterator[list[Worker]]:
    """So many servers."""
    started: list[Worker] = []
    try:
        for _ in range(n):
            started.append(Worker(threads))
        yield started
    finally:
        for worker in started:
            worker.stop()


def main(endpoint: str, threads: str = "1") -> None:
    folder = os.path.join(os.path.dirname(llama_cpp.__file__), "lib")
    suffix = "dylib" if sys.platform == "darwin" else "so"
    base = ctypes.CDLL(os.path.join(folder, f"libggml-base.{suffix}"))
    ggml = ctypes.CDLL(os.path.join(folder, f"libggml.{suffix}"))
    rpc = ctypes.CDLL(os.path.join(folder, f"libggml-rpc.{suffix}"))
    del base  # only loaded for the others
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
