"""The options of `specllama serve`."""

from __future__ import annotations

import argparse
import math
from ipaddress import ip_network

from specllama.commands import _arguments
from specllama.commands.whole_numbers import UNTIL_FULL, whole
from specllama.requests.options import FIELDS

_FOR_REQUESTS = [name for name, field in FIELDS.items() if field.field and field.flags]
"""Options of a generation whose default, for requests without them, can be set here."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add all options of the command."""
    _arguments.add_session(parser)
    _arguments.add_chat_template(parser)
    _add_models(parser)
    parser.add_argument(
        "-a", "--alias", type=_name, help="model name to report (default: the file name)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port",
        type=whole(0, 65535),
        default=8080,
        help="port to listen on; 0: any free port (default: 8080)",
    )
    parser.add_argument(
        "--ollama-port", type=whole(0, 65535), metavar="PORT",
        help="second port with Ollama's API, for programs that expect it on 11434; --port serves "
        "it, too (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "-np", "--parallel", "--n-seq", dest="n_seq", type=whole(1, 64), metavar="N",
        help="maximum number of concurrent requests (default: 8 with a GPU, else 4; with fewer "
        "than 8 CPU cores 2)",
    )  # fmt: skip
    _arguments.add_options(parser, "cache_ram", defaults={"cache_ram": 8192})
    _arguments.add_options(parser, "memory", "memory_file", defaults={"memory": 64})
    parser.add_argument(
        "--slot-save-path", type=_arguments.path, metavar="FOLDER",
        help="folder for the files that POST /slots/{id} saves and restores (default: none)",
    )  # fmt: skip
    # Defaults for requests that leave these open; the temperature is that of the OpenAI API.
    requests = parser.add_argument_group("Defaults for requests")
    _arguments.add_options(requests, *_FOR_REQUESTS, defaults={"temperature": 1.0})
    parser.add_argument(
        "-n", "--n-predict", type=whole(1, words=UNTIL_FULL), metavar="N",
        help="maximum number of tokens per answer; requests may ask for fewer (default: until the "
        "context is full; in /v1/completions 16)",
    )  # fmt: skip
    parser.add_argument(
        "--max-queue",
        type=whole(0),
        default=64,
        help="maximum number of waiting requests (default: 64)",
    )
    parser.add_argument(
        "--api-key", type=_key,
        help="API keys, separated by commas; each request must send one of them (default: "
        "$SPECLLAMA_API_KEY, or none)",
    )  # fmt: skip
    parser.add_argument(
        "--cors-origin", action="append", default=[], metavar="ORIGIN",
        help="origin of a web page that may use the server, e.g. http://localhost:3000; may be "
        "repeated (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--forwarded-allow-ips", type=_addresses, default=[], metavar="ADDRESS,...",
        help="addresses of proxies whose X-Forwarded-For is trusted (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--max-body", type=whole(1), metavar="N",
        help="maximum size of a request in bytes (default: 1048576; for a vision or audio model "
        "33554432)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-image-urls", action="store_true",
        help="download images that requests name by a public http(s) address",
    )  # fmt: skip
    parser.add_argument(
        "--max-prompt",
        type=whole(1),
        help="maximum number of prompt tokens (default: the context length)",
    )
    parser.add_argument(
        "--timeout",
        type=whole(1),
        default=600,
        help="maximum time for an answer in seconds (default: 600)",
    )
    parser.add_argument(
        "--idle-timeout", type=whole(1), default=60,
        help="seconds to wait for the next draft of a client with --target-url (default: 60)",
    )  # fmt: skip
    parser.add_argument(
        "--shutdown-timeout", type=whole(0), default=10,
        help="seconds that running answers get to finish after SIGTERM or Ctrl-C (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="log all requests, not only those that generate or fail",
    )
    parser.add_argument(
        "--log-texts", action="store_true",
        help="also log prompts and answers, which may be confidential",
    )  # fmt: skip
    parser.add_argument(
        "--log-file",
        type=_arguments.path,
        metavar="FILE",
        help="file to which the log is also appended",
    )


def _name(value: str) -> str:
    return _arguments.text(_arguments.filled(value))


def _key(value: str) -> str:
    if not value:  # for example from a shell variable that is not set
        raise argparse.ArgumentTypeError("is empty; leave it out for a server without a key")
    return value


def _addresses(value: str) -> list[str]:
    addresses = [one.strip() for one in value.split(",")]
    for one in addresses:
        try:
            ip_network(one)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{one!r} is not an IP address or network") from None
    return addresses


def _add_models(parser: argparse.ArgumentParser) -> None:
    """Add the options for several models."""
    parser.add_argument(
        "--models", type=_arguments.path, metavar="FILE",
        help="file that lists several models, instead of -m; requests choose one by name. A "
        "section per model, in TOML or as in llama.cpp's preset files",
    )  # fmt: skip
    parser.add_argument(
        "--models-dir",
        type=_arguments.path,
        metavar="DIR",
        help="folder whose GGUF files are also served",
    )
    parser.add_argument(
        "--models-max", type=whole(0), default=4, metavar="N",
        help="maximum number of models in memory (default: 4; 0: all)",
    )  # fmt: skip
    parser.add_argument(
        "--sleep-idle-seconds", type=whole(1, words={"-1": math.inf}), metavar="N",
        default=math.inf, help="unload a model after N seconds without a request (default: never)",
    )  # fmt: skip
    # For processes that a server of several models starts: where to listen.
    parser.add_argument("--listen-fd", type=whole(0), help=argparse.SUPPRESS)
