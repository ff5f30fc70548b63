"""How much is tried of what is long: the share that TOOLCRIB_EFFORT names, a tenth where it names none.

CI tries three tenths on one Python (`.ci/run`): all of it takes ten minutes of processor more. Of a list (programs,
faults, known seeds) each run takes another part: a change that breaks one thing of it alone passes two runs of three,
one that breaks ten things anywhere passes one run of fifty. `TOOLCRIB_EFFORT=1 make check` tries all of it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")

EFFORT = float(os.environ.get("TOOLCRIB_EFFORT", "0.1"))
IS_FULL = EFFORT >= 0.3
"""Whether all is tried of what takes a minute in whole, such as durable runs that are disturbed: in CI, too."""


def examples(full: int) -> int:
    """Return how many of Hypothesis's examples are tried where `full` are all there is to try."""
    return max(5, round(full * EFFORT))


def share(things: Sequence[_Thing]) -> list[_Thing]:
    """Return those of the things that this run tries: each second, third or tenth, from one of the first at random."""
    step = max(1, round(1 / EFFORT))
    return [*things[random.randrange(min(step, len(things))) :: step]]
