"""Sounds from WAV files."""

from __future__ import annotations

import io
import random
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from specllama.errors import ArgumentError
from specllama.media.sound import load_sound


def wav(samples: Any, rate: int = 16_000, width: int = 2) -> bytes:
    """Return a WAV file of samples from -1 to 1, of shape (n,) or (n, channels)."""
    values = np.asarray(samples, float)
    channels = 1 if values.ndim == 1 else values.shape[1]
    whole = np.clip(
        np.round(values * 2 ** (8 * width - 1)), -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1
    )
    wide = whole.astype("<i4").reshape(-1, 1)
    if width == 1:
        wide = wide + 128
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(wide.view(np.uint8)[:, :width].tobytes())
    return file.getvalue()


def tone(hertz: float, rate: int, seconds: float = 0.5) -> Any:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sound_samples_of_any_width_are_read(width: int) -> None:
    samples = [-1.0, -0.5, 0.0, 0.25, 0.5]
    read = load_sound(wav(samples, width=width), 16_000)
    assert read.dtype == np.float32
    assert read == pytest.approx(samples, abs=0.01)


def test_sound_channels_are_mixed(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(wav([[0.5, 0.0], [0.25, 0.25]]))
    assert load_sound(path, 16_000) == pytest.approx([0.25, 0.25], abs=1e-3)


@pytest.mark.parametrize("before", [8_000, 22_050, 44_100, 48_000])
def test_resampling_keeps_a_tone(before: int) -> None:
    read = load_sound(wav(tone(440, before), before), 16_000)
    assert len(read) == 8_000
    assert read[500:-500] == pytest.approx(tone(440, 16_000)[500:-500], abs=0.03)


def test_resampling_removes_a_tone_above_half_of_the_rate() -> None:
    read = load_sound(wav(tone(15_000, 48_000), 48_000), 16_000)
    assert np.abs(read[500:-500]).max() < 0.01


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "not a WAV file"),
        (b"ID3\4", "MP3 and FLAC are not supported"),
        (b"RIFF\x04\0\0\0WAVE", "not a WAV file of PCM"),
        (wav([]), "no samples"),
        (wav([0.0], rate=1), "1 channels, 1 Hz"),
        (wav(np.zeros(4001 * 600), rate=4000, width=1), "longer than 600 seconds"),
        (7, "must be a path"),
    ],
)
def test_data_that_is_not_a_sound_is_refused(source: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        load_sound(source, 16_000)


def test_a_damaged_sound_is_read_or_refused() -> None:
    data = wav(tone(440, 16_000, 0.01))
    draws = random.Random(0)
    for _ in range(200):
        changed = bytearray(data[: draws.randint(40, len(data))])
        for _ in range(draws.randint(1, 4)):
            changed[draws.randrange(44) % len(changed)] = draws.randrange(256)
        try:
            read = load_sound(bytes(changed), 16_000)
        except ArgumentError:
            continue
        assert len(read) > 0
        assert np.isfinite(read).all()
