"""Replays: recorded calls under other tools, hooks or rules. Every gate is asked again, no tool is executed.

A room above the pipeline, which asks its gates; the record is read here, and never written.
"""

from toolcrib.replay._replay import Replay, replay
from toolcrib.replay._verdict import Difference, Verdict

__all__ = ["Difference", "Replay", "Verdict", "replay"]
