"""Replays: recorded calls under other tools, hooks or rules. Every gate is asked again, no tool is executed.

A replay uses the gates of the pipeline. It reads the record and never writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.replay._replay import Replay, replay
    from toolcrib.replay._verdict import Difference, ReplayVerdict
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._replay": "Replay replay",
            "._verdict": "Difference ReplayVerdict",
        },
    )

__all__ = ["Difference", "Replay", "ReplayVerdict", "replay"]
