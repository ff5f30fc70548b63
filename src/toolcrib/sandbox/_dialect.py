"""What programs find in a worker's Python, told without asking a worker."""

from __future__ import annotations

import importlib.util
from functools import cache

from toolcrib.sandbox._protocol import Dialect
from toolcrib.sandbox.worker._imports import UNLISTED, WANTED

__all__ = ["NOTES", "worker_dialect"]

NOTES = (
    "`parallel((f, a), (g, b, c))` calls `f(a)` and `g(b, c)` at once and returns the list of their results.",
    "What a streaming function returns is an iterator: take its values one by one, or `list(...)`.",
    "The standard library can be imported, as far as it needs no file and no network.",
)


@cache
def worker_dialect() -> Dialect:
    """Return what programs find there: the modules that there are in this Python, and what is at hand besides tools."""
    return Dialect(
        frozenset(name for name in WANTED.split() if _is_here(name)), UNLISTED, frozenset({"parallel"}), True
    )


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package in this Python
        return False
