"""How much is tried of what has no end: the share that TOOLCRIB_EFFORT names, a tenth where it names none.

CI tries all of it on one Python.
"""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("TOOLCRIB_EFFORT", "0.1"))


def examples(full: int) -> int:
    """Return how many of Hypothesis's examples are tried where `full` are all there is to try."""
    return max(5, round(full * EFFORT))
