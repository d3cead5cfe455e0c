"""mypy's stubtest, but attributes that are `Final` in the stubs may be read-only at run time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from mypy import nodes, stubtest

_verify_var = stubtest.verify.dispatch(nodes.Var)


@stubtest.verify.register(nodes.Var)
def _verify(stub: nodes.Var, runtime: Any, path: list[str]) -> Iterator[stubtest.Error]:
    for error in _verify_var(stub, runtime, path):
        if not (stub.is_final and "read-only at runtime" in error.message):
            yield error


if __name__ == "__main__":
    sys.exit(stubtest.main())
