"""The errors of specllama. Every one derives from `SpecllamaError` and says, in one sentence, what
was wrong and what to do."""

from __future__ import annotations


class SpecllamaError(Exception):
    """What every error of this package is."""


class ArgumentError(SpecllamaError, ValueError):
    """An option, a prompt or a token id that cannot be used."""


class ModelError(SpecllamaError, ValueError):
    """A file that is not there (or a repository of the Hub), not a GGUF, damaged, or not a model
    that generates text."""


class HubError(SpecllamaError, OSError):
    """The Hugging Face Hub cannot be reached, or a download breaks off or cannot be stored."""


class RemoteError(SpecllamaError, ConnectionError):
    """The server that has the target cannot be reached, refuses, or failed."""


class OutOfMemoryError(SpecllamaError, MemoryError):
    """Memory for the model, its KV memory or its computation could not be had."""


class DecodeError(SpecllamaError, RuntimeError):
    """llama.cpp could not decode, or gave logits that are not numbers."""


class ClosedError(SpecllamaError, RuntimeError):
    """The session, or the stream, was closed before the call."""


class BusyError(SpecllamaError, RuntimeError):
    """Another thread, or the session's own drafter, is inside the session, or all its sequences are
    in use; or a drafter, or a callback, would wait for itself."""


class QueueFullError(SpecllamaError, RuntimeError):
    """As many requests are at work, and wait, as may."""
