"""Sounds from WAV, MP3 and FLAC files, in the form for models."""

from __future__ import annotations

import io
import os
import wave
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specllama import _check, _files
from specllama.errors import ArgumentError
from specllama.media import data_url

SoundSource = str | os.PathLike[str] | bytes
"""A path, a data URL, or the bytes of a file."""

MOST_SECONDS = 600
_MOST_CHANNELS = 8
_MOST_SAMPLES = MOST_SECONDS * 48_000
"""Most samples of a channel that are decoded of an MP3 or FLAC file, which may be small and long.
"""

_AT_ONCE = 1 << 16
"""Samples of a channel that are decoded before they are mixed."""

_WIDEST = 4
"""Most bytes of a sample."""
_LOWEST_RATE, _HIGHEST_RATE = 4_000, 192_000
_LOBES = 16
"""Zero crossings on each side of the low-pass filter before a reduction of the rate."""


def is_sound(data: bytes) -> bool:
    """Whether bytes are those of a file that `load_sound` reads, as far as their begin says."""
    return _kind_of(data) is not None


def load_sound(source: SoundSource, rate: int, name: str = "audio") -> NDArray[np.float32]:
    """Return the samples of a sound, with its channels mixed.

    Args:
        source: The path of a WAV file (PCM with 8, 16, 24 or 32 bits), an MP3 or a FLAC file, its
            bytes, or a data URL with them.
        rate: Sample rate of the result in Hz.
        name: Its name in error messages, if it is not a file.

    Returns:
        Samples from -1 to 1; at most 10 minutes.

    Raises:
        ArgumentError: It cannot be read, is too long, or is not such a file; or soundfile, which
            decodes MP3 and FLAC, is not installed.
    """
    if isinstance(source, (bytes, bytearray)):
        return _resampled(*_samples(name, bytes(source)), rate)
    if isinstance(source, str) and source[:5].lower() == data_url.SCHEME:
        return _resampled(*_samples(name, data_url.content(name, source)), rate)
    if isinstance(source, (str, os.PathLike)):
        path = _check.path(name, source)
        return _resampled(*_samples(path, _files.read(path)), rate)
    raise ArgumentError(
        f"{name} must be a path, a data URL or bytes of a WAV, MP3 or FLAC file, not "
        f"{_check.quoted(source)}."
    )


def _kind_of(data: bytes) -> str | None:
    """Return the kind of a sound's file by its first bytes; None: it is none that is read here."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "WAV"
    if data[:4] == b"fLaC":
        return "FLAC"
    # A tag, or the first frame, of layer III.
    is_frame = len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2
    return "MP3" if data[:3] == b"ID3" or is_frame else None


def _samples(name: str, data: bytes) -> tuple[NDArray[np.float32], int]:
    """Return the samples of a file and their rate in Hz."""
    kind = _kind_of(data)
    if kind is None:
        raise ArgumentError(f"{name} is not a WAV, MP3 or FLAC file; convert it.")
    samples, rate = _of_wav(name, data) if kind == "WAV" else _of_compressed(name, kind, data)
    if len(samples) == 0:
        raise ArgumentError(f"{name} has no samples; give another sound.")
    if len(samples) > MOST_SECONDS * rate:
        raise ArgumentError(f"{name} is longer than {MOST_SECONDS} seconds; cut it.")
    return samples, rate


def _check_form(name: str, n_channels: int, rate: int) -> None:
    if n_channels > _MOST_CHANNELS or not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
        raise ArgumentError(
            f"{name} has {n_channels} channels and {rate} Hz; at most {_MOST_CHANNELS} channels "
            f"and {_LOWEST_RATE} to {_HIGHEST_RATE} Hz are supported."
        )


def _of_compressed(name: str, kind: str, data: bytes) -> tuple[NDArray[np.float32], int]:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: it has no libsndfile
        raise ArgumentError(
            f"{kind} files need the package soundfile; run: pip install 'specllama[audio]'"
        ) from None
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if file.format != kind:
                raise ValueError("it holds something else")
            rate: int = file.samplerate
            _check_form(name, file.channels, rate)
            mixed = [block.mean(axis=1, dtype=np.float32) for block in _blocks(name, file)]
    except ArgumentError:
        raise
    except Exception as error:  # decoders raise any exception
        why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise ArgumentError(
            f"{name} is a damaged {kind} file ({why:.80}); save it again."
        ) from None
    samples = np.concatenate(mixed) if mixed else np.zeros(0, np.float32)
    return np.clip(samples, -1, 1), rate


def _blocks(name: str, file: Any) -> Iterator[NDArray[np.float32]]:
    """Yield the samples of an open file, of shape (samples, channels). Raises ArgumentError if
    there are too many."""
    n = 0
    while len(block := file.read(_AT_ONCE, dtype="float32", always_2d=True)):
        yield block
        n += len(block)
        if n > min(MOST_SECONDS * file.samplerate, _MOST_SAMPLES):
            most = min(MOST_SECONDS, _MOST_SAMPLES // file.samplerate)
            raise ArgumentError(f"{name} is longer than {most} seconds; cut it.")


def _of_wav(name: str, data: bytes) -> tuple[NDArray[np.float32], int]:
    try:
        with wave.open(io.BytesIO(data)) as file:
            rate, n_channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            _check_form(name, n_channels, rate)
            if width > _WIDEST:
                raise wave.Error(f"{8 * width} bits")
            frames = file.readframes(MOST_SECONDS * rate + 1)
    except (wave.Error, EOFError, RuntimeError, OverflowError) as error:
        why = str(error) or "it is cut off"
        raise ArgumentError(
            f"{name} is not a WAV file of PCM ({why:.80}); convert it to 16 bits."
        ) from None
    n = len(frames) // (width * n_channels)
    raw = np.frombuffer(frames, np.uint8, n * n_channels * width).reshape(-1, width)
    if width == 1:
        values = (raw[:, 0].astype(np.float32) - 128) / 128
    else:  # the bytes of a sample become the highest of 32 bits
        wide = np.zeros((len(raw), _WIDEST), np.uint8)
        wide[:, _WIDEST - width :] = raw
        values = wide.view("<i4")[:, 0].astype(np.float32) / 2**31
    mixed: NDArray[np.float32] = values.reshape(n, n_channels).mean(axis=1, dtype=np.float32)
    return mixed, rate


def _resampled(samples: NDArray[np.float32], before: int, rate: int) -> NDArray[np.float32]:
    """Return samples at another rate, by linear interpolation, without the frequencies above half
    of that rate."""
    if before == rate:
        return samples
    if before > rate:
        reach = _LOBES * before // rate
        at = np.arange(-reach, reach + 1) * (rate / before)
        taps = np.sinc(at) * np.hanning(len(at) + 2)[1:-1]
        taps = (taps / taps.sum()).astype(np.float32)
        samples = np.convolve(samples, taps)[reach : reach + len(samples)]
    n = max(round(len(samples) * rate / before), 1)
    places = np.minimum(np.arange(n) * (before / rate), len(samples) - 1)
    left = places.astype(np.int64)
    right = np.minimum(left + 1, len(samples) - 1)
    part = (places - left).astype(np.float32)
    found: NDArray[np.float32] = samples[left] * (1 - part) + samples[right] * part
    return found
