"""Prompts of many kinds for the bundled model, whose context is 2048 tokens."""

from __future__ import annotations

from typing import Any

from specllama import SpecSession

MODULE = '''"""Read and write records."""

import os
import struct


class Record:
    """A record of a file."""

    def __init__(self, name, offset, size):
        self.name = name
        self.offset = offset
        self.size = size

    def read(self, file):
        file.seek(self.offset)
        return file.read(self.size)

    def write(self, file, data):
        if len(data) > self.size:
            raise ValueError('data too long')
        file.seek(self.offset)
        file.write(data)
'''

# The bundled model may not end. The length of a sampled text differs between processors, because
# the last bits of their logits differ.
ENDLESS: dict[str, Any] = {"logit_bias": {0: -100}}

LONG: dict[str, Any] = {"max_tokens": 600, "temperature": 0.8, "seed": 1, **ENDLESS}
"""Options of an answer that takes many rounds."""

PROMPTS: dict[str, str] = {
    "module": MODULE,
    "module again": MODULE + "\n\n" + MODULE.replace("Record", "Entry")[:400],
    "function": "def fibonacci(n):\n    a, b = 0, 1\n",
    "class": "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(",
    "imports": "import os\nimport sys\nimport re\nfrom collections import",
    "test": "import unittest\n\nclass TestParser(unittest.TestCase):\n\n    def test_",
    "docstring": '"""Utilities for working with dates.\n\n',
    "c code": "#include <stdio.h>\n\nint main(int argc, char **argv) {\n    for (int i = 0;",
    "shell": "#!/bin/sh\nset -e\nfor file in *.txt; do\n",
    "english": "The quick brown fox jumps over the lazy dog, and then",
    "story": "Once upon a time there was a small town at the edge of a large forest. Every",
    "list": "Ingredients:\n- flour\n- sugar\n- eggs\n- ",
    "json": '{"users": [{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}, {"id": 3,',
    "csv": "id,name,price\n1,apple,0.50\n2,banana,0.25\n3,",
    "xml": "<table><tr><td>1</td><td>2</td></tr><tr><td>",
    "digits": "3.14159265358979323846264338327950288419716939937510582097494459230781640628",
    "counting": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    "hex": "0x00 0x01 0x02 0x03 0x04 0x05 0x06",
    "emoji": "Launch \N{ROCKET}\N{ROCKET} party \N{PARTY POPPER} thumbs \N{THUMBS UP SIGN}",
    "cjk": "日本語のテキストと中文文本以及한국어",
    "accents": "Le cœur a ses raisons que la raison ne connaît point; žluťoučký kůň",
    "whitespace": "\n\n\n        \t\t\n    ",
    "one token": "x",
    # Leaves about 50 tokens of the context, fewer than the usual 200.
    "near the limit": (MODULE + "\n\n") * 15,
}


def most_tokens(session: SpecSession, prompt: str, n: int) -> int:
    """Return `n`, or the number of tokens that fit after a prompt, if it is smaller."""
    return min(n, session.n_ctx - len(session.tokenize(prompt)))


TOO_COMPLEX = '%llguidance {}\nstart: "a" "x" ' + " ".join(f'("b{n}")?' for n in range(3000))
"""A grammar that becomes too complex after "ax"."""
