"""The default number of concurrent requests of `specllama serve`."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest
from specllama._core import list_devices
from specllama.commands import serve


@pytest.mark.parametrize(
    ("takes_layers", "n_cpus", "options", "n_slots"),
    [
        ([False, True], 2, {}, 8),
        ([False, True], 2, {"n_gpu_layers": 0}, 2),
        ([False, True], 8, {"device": "none"}, 4),
        ([False], 8, {}, 4),
        ([False], 2, {}, 2),
    ],
)
def test_serve_has_fewer_slots_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
    takes_layers: list[bool],
    n_cpus: int,
    options: dict[str, object],
    n_slots: int,
) -> None:
    devices = [SimpleNamespace(takes_layers=one) for one in takes_layers]
    monkeypatch.setattr(serve, "list_devices", lambda: devices)
    monkeypatch.setattr(serve.os, "cpu_count", lambda: n_cpus)
    arguments = Namespace(**{"n_gpu_layers": None, "device": None} | options)
    assert serve._slots(arguments) == n_slots


def test_the_cpu_device_takes_no_gpu_layers() -> None:
    assert [one.takes_layers for one in list_devices() if one.name == "CPU"] == [False]
