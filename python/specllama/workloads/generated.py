"""Prompts that the model continues freely in `specllama bench`."""

from __future__ import annotations

from pathlib import Path

COPY = (Path(__file__).parent / "copy.txt").read_text("utf-8").removesuffix("\n")

FREE = '''\
"""Read settings from a file."""

import os
import re


def read_settings(path):'''

WORKLOADS = {"copy": COPY, "free": FREE}
"""copy: the same function again with one name changed (also the default prompt of spec-cli). free:
nothing to copy; of six prompts tried, the one after which the bundled model repeats itself
least."""
