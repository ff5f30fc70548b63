"""Random numbers of a program: from a seed, so that a program that runs again draws the same ones."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import uuid
from typing import Any

_BYTES = random.Random(0)
"""The source of `os.urandom`, and with it of `secrets`, `uuid.uuid4` and `random.SystemRandom`."""
_NODE = 0x02_00_00_00_00_00  # of `uuid.uuid1`: locally administered


def install() -> None:
    """Replace the functions that draw from the system by those that draw from the seed."""
    os.urandom = _urandom
    random._urandom = _urandom  # pyright: ignore[reportAttributeAccessIssue] -- what SystemRandom has imported
    random.Random.seed = _seed
    random.seed = random._inst.seed  # pyright: ignore[reportPrivateUsage] -- the generator of the module
    uuid._generate_time_safe = uuid._UuidCreate = None  # pyright: ignore[reportAttributeAccessIssue] -- C, past the clock
    start("")


def start(seed: str) -> None:
    """Begin anew from this seed."""
    random.seed(seed)
    _BYTES.seed(f"bytes {seed}")
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(_BYTES.getrandbits(32))  # what has no seed of its own draws from `secrets`
    uuid._node = _NODE | _BYTES.getrandbits(40)  # pyright: ignore[reportAttributeAccessIssue] -- a network card's number
    uuid._last_timestamp = None  # pyright: ignore[reportAttributeAccessIssue] -- of an earlier program
    tempfile._name_sequence = None  # pyright: ignore[reportAttributeAccessIssue] -- drawn from a generator of its own


_seed_with = random.Random.seed


def _seed(self: random.Random, a: int | float | str | bytes | bytearray | None = None, version: int = 2) -> None:
    """Begin anew from this seed; without one, from one that is drawn."""
    _seed_with(self, _BYTES.getrandbits(256) if a is None else a, version)


def _urandom(size: int, /) -> bytes:
    if size < 0:
        raise ValueError("negative argument not allowed")
    return _BYTES.randbytes(size)
