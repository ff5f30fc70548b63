"""Names for turns: UUIDs of version 4 form, for a fraction of what a random one costs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, count
from uuid import uuid4

__all__ = ["new_turn_id"]

_TAILS = tuple(f"{number:02x}" for number in range(256))


def _block(number: int) -> Iterator[str]:
    """Return 256 names that differ in their last two digits."""
    return map(f"{_prefix}{number:010x}".__add__, _TAILS)


def _all() -> Iterator[str]:
    return chain.from_iterable(map(_block, count()))  # no generator: two threads may ask at the same time


def _renew_prefix() -> None:
    global _prefix, _names
    _prefix, _names = str(uuid4())[:24], _all()


_prefix, _names = str(uuid4())[:24], _all()

if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's names
    os.register_at_fork(after_in_child=_renew_prefix)


def new_turn_id() -> str:
    """Return the text of a UUID: random for this process in front, counted behind."""
    return next(_names)
