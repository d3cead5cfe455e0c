"""Sounds from WAV, MP3 and FLAC files."""

from __future__ import annotations

import io
import random
import re
import sys
import tracemalloc
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
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


def packed(kind: str, samples: Any, rate: int = 16_000) -> bytes:
    """An MP3 or FLAC file."""
    file = io.BytesIO()
    soundfile.write(file, np.asarray(samples, np.float32), rate, format=kind)
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


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("kind", ["MP3", "FLAC"])
def test_the_tone_of_an_mp3_or_flac_file_is_read(kind: str, rate: int, tmp_path: Path) -> None:
    path = tmp_path / "sound"
    path.write_bytes(packed(kind, np.stack([tone(440, rate), 0.5 * tone(440, rate)], axis=1), rate))
    read = load_sound(path, 16_000)
    assert read.dtype == np.float32
    assert len(read) == pytest.approx(8_000, abs=0 if kind == "FLAC" else 1_500)
    spectrum = np.abs(np.fft.rfft(read[2_000:6_000]))
    assert spectrum.argmax() == 440 * 4_000 // 16_000
    assert np.abs(read).max() == pytest.approx(0.375, abs=0.05)


@pytest.mark.parametrize("kind", ["MP3", "FLAC"])
def test_a_small_file_of_a_long_sound_is_refused_before_all_is_decoded(kind: str) -> None:
    data = packed(kind, np.zeros((8_000 * 3_600, 1)), 8_000)
    assert len(data) < 32_000_000
    tracemalloc.start()
    with pytest.raises(ArgumentError, match="longer than 600 seconds"):
        load_sound(data, 16_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 16_000 * 700  # float32 of the first ten minutes


def test_a_flac_file_that_claims_more_samples_than_it_has_is_what_it_has() -> None:
    data = bytearray(packed("FLAC", tone(440, 16_000)))
    data[21] |= 0x0F  # the highest of the 36 bits of the number of samples
    assert len(load_sound(bytes(data), 16_000)) == 8_000


@pytest.mark.parametrize("frame", [b"\xff\xe3\x08\xc4", b"\xff\xfb\x00\xc4"])
def test_tiny_mp3_frames_are_refused_without_a_word_on_stderr(
    frame: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArgumentError, match="damaged sound file"):
        load_sound(frame * 250_000, 16_000)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["MP3", "FLAC"])
def test_a_damaged_mp3_or_flac_file_is_a_sound_or_refused(kind: str) -> None:
    data = packed(kind, tone(440, 16_000, 0.3))
    draws = random.Random(1)
    for _ in range(150):
        changed = bytearray(data[: draws.randint(4, len(data))])
        for _ in range(draws.randint(1, 6)):
            changed[draws.randrange(len(changed))] = draws.randrange(256)
        try:
            read = load_sound(bytes(changed), 16_000)
        except ArgumentError:
            continue
        assert 0 < len(read) <= 16_000 * 600
        assert np.isfinite(read).all()


def test_an_mp3_file_without_miniaudio_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    with pytest.raises(ArgumentError, match=r"pip install 'specllama\[audio\]'"):
        load_sound(b"ID3\4", 16_000)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "not a WAV, MP3 or FLAC file"),
        (b"ID3\4", "damaged sound file"),
        (b"fLaC\0\0\0\x22", "damaged sound file"),
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
    n_read = 0
    for _ in range(200):
        changed = bytearray(data[: draws.randint(40, len(data))])
        for _ in range(draws.randint(1, 4)):
            changed[draws.randrange(44) % len(changed)] = draws.randrange(256)
        try:
            read = load_sound(bytes(changed), 16_000)
        except ArgumentError as error:
            said = str(error)
            assert re.fullmatch(r"audio .+\.", said), said
            continue
        assert len(read) > 0
        assert np.isfinite(read).all()
        n_read += 1
    assert 0 < n_read < 200
