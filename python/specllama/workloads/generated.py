"""Prompts that `specllama bench` has continued, as the model likes."""

from __future__ import annotations

from pathlib import Path

COPY = (Path(__file__).parent / "copy.txt").read_text("utf-8").removesuffix("\n")

FREE = '''\
"""Read settings from a file."""

import os
import re


def read_settings(path):'''

WORKLOADS = {"copy": COPY, "free": FREE}
"""copy: the same function again, one name changed (and what spec-cli continues if it is given
nothing). free: nothing that could be copied; of six prompts tried, the one after which the bundled
model repeats itself least."""
