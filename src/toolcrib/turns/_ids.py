"""Names for turns: UUIDs of version 4 form, for a fraction of what a random one costs."""

from __future__ import annotations

import itertools
import os
from uuid import uuid4

__all__ = ["new_turn_id"]

_counter = itertools.count(1)
_prefix = str(uuid4())[:24]


def _renew_prefix() -> None:
    global _prefix
    _prefix = str(uuid4())[:24]


if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's names
    os.register_at_fork(after_in_child=_renew_prefix)


def new_turn_id() -> str:
    """Return the text of a UUID: random for this process in front, counted behind."""
    return f"{_prefix}{next(_counter):012x}"
