"""Prompts that `specllama bench` has continued, as the model likes."""

from __future__ import annotations

COPY = '''\
class Version:
    """A version number."""

    def __init__(self, parts):
        self.parts = parts

    def __eq__(self, other):
        if isinstance(other, Version):
            return self._cmp(other) == 0
        return NotImplemented

    def __le__(self, other):
        if isinstance(other, Version):
            return self._cmp(other) <= 0
        return NotImplemented

    def __lt__(self, other):
        if isinstance(other, Version):
            return self._cmp(other) < 0
        return NotImplemented

    def __ge__(self, other):'''

FREE = '''\
"""Read settings from a file."""

import os
import re


def read_settings(path):'''

WORKLOADS = {"copy": COPY, "free": FREE}
"""copy: the same function again, one name changed. free: nothing that could be copied; of six
prompts tried, the one after which the bundled model repeats itself least."""
