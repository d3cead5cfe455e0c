"""Lossless speculative decoding for GGUF models, on llama.cpp.

from specllama import SpecSession

with SpecSession("model.gguf") as session:
    print(session.generate("def fibonacci(n):").text)
"""

from __future__ import annotations

from specllama import _llama

_llama.load()

from specllama._core import (  # noqa: E402
    Chunk,
    Device,
    DraftedToken,
    MatchedToken,
    MatchFinder,
    NGramPredictor,
    Prediction,
    RoundTrace,
    Seconds,
    Stats,
    TokenLogprobs,
    list_devices,
    set_llguidance_path,
)
from specllama._core import version as __version__  # noqa: E402
from specllama._process import release_helpers_at_fork  # noqa: E402
from specllama.drafter import Drafter  # noqa: E402
from specllama.errors import (  # noqa: E402
    ArgumentError,
    BusyError,
    ClosedError,
    DecodeError,
    HubError,
    ModelError,
    OutOfMemoryError,
    QueueFullError,
    RemoteError,
    SpecllamaError,
)
from specllama.formats.trace import Trace  # noqa: E402
from specllama.formats.traced_token import TracedToken  # noqa: E402
from specllama.model.session_options import SessionOptions  # noqa: E402
from specllama.requests.beams import Beam, BeamOptions  # noqa: E402
from specllama.requests.handle import Handle  # noqa: E402
from specllama.requests.options import GenerateOptions  # noqa: E402
from specllama.requests.stream import Generation, Stream  # noqa: E402
from specllama.requests.tool_call import ToolCall  # noqa: E402
from specllama.session import SpecSession  # noqa: E402

set_llguidance_path(_llama.llguidance_path())
release_helpers_at_fork()

__all__ = [
    "ArgumentError",
    "Beam",
    "BeamOptions",
    "BusyError",
    "Chunk",
    "ClosedError",
    "DecodeError",
    "Device",
    "DraftedToken",
    "Drafter",
    "GenerateOptions",
    "Generation",
    "Handle",
    "HubError",
    "MatchFinder",
    "MatchedToken",
    "ModelError",
    "NGramPredictor",
    "OutOfMemoryError",
    "Prediction",
    "QueueFullError",
    "RemoteError",
    "RoundTrace",
    "Seconds",
    "SessionOptions",
    "SpecSession",
    "SpecllamaError",
    "Stats",
    "Stream",
    "TokenLogprobs",
    "ToolCall",
    "Trace",
    "TracedToken",
    "__version__",
    "list_devices",
]
