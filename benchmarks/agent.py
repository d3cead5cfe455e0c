"""The agent's task in `bench_agent.py`: a small repository, five tools and the requests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FILES = {
    "shop/prices.py": '''"""Prices of a shop."""

VAT = 0.19


def net_price(gross):
    """Return a price without tax."""
    return gross / (1 + VAT)


def gross_price(net):
    """Return a price with tax."""
    return net * (1 + VAT)


def discounted(price, percent):
    """Return a price after a discount."""
    if percent < 0 or percent > 100:
        raise ValueError("percent must be from 0 to 100")
    return price * (100 - percent) / 100
''',
    "shop/cart.py": '''"""A cart of a shop."""

from shop.prices import discounted, gross_price


class Cart:
    """Goods that somebody is going to buy."""

    def __init__(self):
        self.items = []

    def add(self, name, price, count=1):
        """Put something into the cart."""
        self.items.append((name, price, count))

    def remove(self, name):
        """Take something out of the cart."""
        self.items = [item for item in self.items if item[0] != name]

    def total(self, percent=0):
        """Return what the cart costs, with tax, after a discount."""
        net = sum(price * count for _, price, count in self.items)
        return discounted(gross_price(net), percent)
''',
    "tests/test_cart.py": """from shop.cart import Cart


def test_total():
    cart = Cart()
    cart.add("tea", 10, 2)
    assert round(cart.total(), 2) == 23.8


def test_discount():
    cart = Cart()
    cart.add("tea", 10, 2)
    assert round(cart.total(50), 2) == 11.9
""",
}


def _tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": what} for key, what in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [
    _tool("list_files", "Lists all files of the repository."),
    _tool("read_file", "Returns the text of a file.", path="Its path."),
    _tool("search", "Returns the lines that hold a text.", text="The text."),
    _tool("write_file", "Replaces a file.", path="Its path.", text="Its whole new text."),
    _tool("run_tests", "Runs the tests and returns what they print."),
]

ORDERS = [
    "List the files.", "Read shop/prices.py.", "Read shop/cart.py.", "Read tests/test_cart.py.",
    "Run the tests.", "Search for gross_price.",
    "Rename gross_price to with_tax in shop/prices.py: write the whole file.",
    "Do the same in shop/cart.py: write the whole file.", "Run the tests.",
    "Search for net_price.",
    "Rename net_price to without_tax in shop/prices.py: write the whole file.",
    "Read shop/prices.py again.", "Run the tests.", "Search for percent.",
    "Add type hints to all functions of shop/prices.py: write the whole file.", "Run the tests.",
    "Add type hints to all methods in shop/cart.py: write the whole file.", "Run the tests.",
    "Read shop/cart.py again.", "Search for count.",
    "Add a method count to Cart in shop/cart.py that returns how many goods are in it: write the "
    "whole file.",
    "Run the tests.",
    "Add a test of Cart.remove to tests/test_cart.py: write the whole file.", "Run the tests.",
    "Read tests/test_cart.py again.", "Search for def test.",
    "Write a README.md that says what the shop package has.", "Read README.md.",
    "List the files.", "Run the tests.",
]  # fmt: skip
"""A request for each turn."""


class Repository:
    """The files in a folder, and the tools for them.

    Args:
        root: An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        for name, text in FILES.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        self._tools: Mapping[str, Callable[..., str]] = {
            "list_files": self._list, "read_file": self._read, "search": self._search,
            "write_file": self._write, "run_tests": self._test,
        }  # fmt: skip

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the result of a tool; after a failure, its error message."""
        try:
            return self._tools[name](**arguments)
        except (OSError, ValueError, TypeError, KeyError) as error:
            return f"error: {error}"

    def _paths(self) -> list[Path]:
        return [one for one in sorted(self._root.rglob("*")) if one.suffix in (".py", ".md")]

    def _inside(self, path: str) -> Path:
        found = (self._root / path).resolve()
        if not found.is_relative_to(self._root.resolve()):
            raise ValueError("this is outside of the repository")
        return found

    def _list(self) -> str:
        return "\n".join(str(path.relative_to(self._root)) for path in self._paths())

    def _read(self, path: str) -> str:
        return self._inside(path).read_text()

    def _search(self, text: str) -> str:
        return "\n".join(
            f"{path.relative_to(self._root)}:{i}: {line}"
            for path in self._paths()
            for i, line in enumerate(path.read_text().splitlines(), 1)
            if text in line
        )

    def _write(self, path: str, text: str) -> str:
        self._inside(path).write_text(text)
        return "written"

    def _test(self) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        process = subprocess.run(
            command, cwd=self._root, capture_output=True, text=True, timeout=60, check=False
        )
        # Without the time, which differs in every run.
        return process.stdout.rsplit(" in ", 1)[0][-600:]
