"""The errors of specllama. Each derives from `SpecllamaError`. Its message says what is wrong and
what to do."""

from __future__ import annotations


class SpecllamaError(Exception):
    """Base class of all errors of this package."""


class ArgumentError(SpecllamaError, ValueError):
    """An option, a prompt or a token id cannot be used."""


class ModelError(SpecllamaError, ValueError):
    """A file, or a repository of the Hub, does not exist; or the file is not a GGUF, is damaged, or
    is not a model that generates text."""


class HubError(SpecllamaError, OSError):
    """The Hugging Face Hub cannot be reached; or a download breaks off or cannot be stored."""


class RemoteError(SpecllamaError, ConnectionError):
    """The server that has the target cannot be reached, refuses, or failed."""


class OutOfMemoryError(SpecllamaError, MemoryError):
    """There is not enough memory for the model, its KV memory or its computation."""


class DecodeError(SpecllamaError, RuntimeError):
    """llama.cpp could not decode, or returned NaN or infinite logits."""


class ClosedError(SpecllamaError, RuntimeError):
    """The session, or the stream, was closed before the call."""


class BusyError(SpecllamaError, RuntimeError):
    """Another thread, or the session's own drafter, is inside the session; or all its sequences are
    in use; or a drafter or callback would have to wait for itself."""


class QueueFullError(SpecllamaError, RuntimeError):
    """The session's queue of waiting requests is full (`max_queue`)."""
