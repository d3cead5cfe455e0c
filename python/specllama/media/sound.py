"""Sounds from WAV, MP3 and FLAC files, in the form for models."""

from __future__ import annotations

import io
import os
import wave
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from specllama import _check, _files
from specllama.errors import ArgumentError
from specllama.media import data_url

SoundSource = str | os.PathLike[str] | bytes
"""A path, a data URL, or the bytes of a file."""

MOST_SECONDS = 600
_MOST_CHANNELS = 8
_AT_ONCE = 1 << 16
"""Samples of an MP3 or FLAC file that are decoded at once: a small file can contain a long sound.
"""

_WIDEST = 4
"""Maximum number of bytes of a sample."""
_LOWEST_RATE, _HIGHEST_RATE = 4_000, 192_000
_LOBES = 16
"""Zero crossings on each side of the low-pass filter before a reduction of the rate."""


def is_sound(data: bytes) -> bool:
    """Whether the first bytes are those of a file that `load_sound` reads."""
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
        ArgumentError: It cannot be read, is too long, or is not such a file; or miniaudio, which
            decodes MP3 and FLAC, is not installed.
    """
    if isinstance(source, (bytes, bytearray)):
        return _samples(name, bytes(source), rate)
    if isinstance(source, str) and source[:5].lower() == data_url.SCHEME:
        return _samples(name, data_url.content(name, source), rate)
    if isinstance(source, (str, os.PathLike)):
        path = _check.path(name, source)
        return _samples(path, _files.read(path), rate)
    raise ArgumentError(
        f"{name} must be a path, a data URL or bytes of a WAV, MP3 or FLAC file, not "
        f"{_check.quoted(source)}."
    )


def _kind_of(data: bytes) -> str | None:
    """Return the kind of a sound's file by its first bytes; None: it is not supported."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "WAV"
    if data[:4] == b"fLaC":
        return "FLAC"
    # A tag, or the header of a frame of layer III.
    is_frame = len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2
    return "MP3" if data[:3] == b"ID3" or is_frame else None


def _samples(name: str, data: bytes, rate: int) -> NDArray[np.float32]:
    """Return the samples of a file at a rate in Hz."""
    kind = _kind_of(data)
    if kind is None:
        raise ArgumentError(f"{name} is not a WAV, MP3 or FLAC file; convert it.")
    return (_of_wav if kind == "WAV" else _of_compressed)(name, data, rate)


def _of_compressed(name: str, data: bytes, rate: int) -> NDArray[np.float32]:
    try:
        from miniaudio import MiniaudioError, SampleFormat, stream_memory
    except ImportError:
        raise ArgumentError(
            "MP3 and FLAC files need the package miniaudio; run: pip install 'specllama[audio]'"
        ) from None
    parts = [np.zeros(0, np.float32)]
    n = 0
    try:
        with closing(stream_memory(data, SampleFormat.FLOAT32, 1, rate, _AT_ONCE)) as decoded:
            for part in decoded:
                parts.append(np.frombuffer(part, np.float32))
                n += len(part)
                _check_length(name, n, rate)
    except MiniaudioError:
        raise ArgumentError(f"{name} is a damaged sound file; save it again.") from None
    _check_length(name, n, rate)
    return np.clip(np.concatenate(parts), -1, 1)


def _check_length(name: str, n: int, rate: int) -> None:
    if n == 0:
        raise ArgumentError(f"{name} has no samples; give another sound.")
    if n > MOST_SECONDS * rate:
        raise ArgumentError(f"{name} is longer than {MOST_SECONDS} seconds; cut it.")


def _of_wav(name: str, data: bytes, wanted: int) -> NDArray[np.float32]:
    try:
        with wave.open(io.BytesIO(data)) as file:
            rate, n_channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            usual = n_channels <= _MOST_CHANNELS and width <= _WIDEST
            if not (usual and _LOWEST_RATE <= rate <= _HIGHEST_RATE):
                raise ArgumentError(
                    f"{name} has {n_channels} channels, {rate} Hz and {8 * width} bits; at most "
                    f"{_MOST_CHANNELS} channels, {_LOWEST_RATE} to {_HIGHEST_RATE} Hz and "
                    f"{8 * _WIDEST} bits are supported."
                )
            frames = file.readframes(MOST_SECONDS * rate + 1)
    except (wave.Error, EOFError, RuntimeError, OverflowError) as error:
        why = str(error) or "it is cut off"
        raise ArgumentError(
            f"{name} is not a WAV file of PCM ({why:.80}); convert it to 16 bits."
        ) from None
    n = len(frames) // (width * n_channels)
    _check_length(name, n, rate)
    raw = np.frombuffer(frames, np.uint8, n * n_channels * width).reshape(-1, width)
    if width == 1:
        values = (raw[:, 0].astype(np.float32) - 128) / 128
    else:  # the bytes of a sample become the highest of 32 bits
        wide = np.zeros((len(raw), _WIDEST), np.uint8)
        wide[:, _WIDEST - width :] = raw
        values = wide.view("<i4")[:, 0].astype(np.float32) / 2**31
    mixed: NDArray[np.float32] = values.reshape(n, n_channels).mean(axis=1, dtype=np.float32)
    return _resampled(mixed, rate, wanted)


def _resampled(samples: NDArray[np.float32], before: int, rate: int) -> NDArray[np.float32]:
    """Return samples at another rate, by linear interpolation, without the frequencies above half
    of that rate."""
    if before == rate:
        return samples
    if before > rate:
        reach = _LOBES * before // rate
        at = np.arange(-reach, reach + 1) * (rate / before)
        taps = np.sinc(at) * np.hanning(len(at) + 2)[1:-1]
        samples = np.convolve(samples, taps / taps.sum())[reach : reach + len(samples)]
    n = max(round(len(samples) * rate / before), 1)
    places = np.arange(n) * (before / rate)
    found: NDArray[np.float32] = np.interp(places, np.arange(len(samples)), samples).astype("f4")
    return found
