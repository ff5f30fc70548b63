"""How much is tried of what has no end: all of it, or the share that TOOLCRIB_EFFORT names."""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("TOOLCRIB_EFFORT", "1"))


def examples(full: int) -> int:
    """Return how many of Hypothesis's examples are tried where `full` are all there is to try."""
    return max(5, round(full * EFFORT))
