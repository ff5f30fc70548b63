"""Activity events: the begin, changes and end of an agent's run, a turn, a program, a session, or a request.

A `request` is one of an MCP client; a `chat` is one to a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

ActivityEventKind: TypeAlias = Literal["opened", "changed", "closed"]
"""The kinds of activity event: the activity began, went on, or ended."""
ActivityKind: TypeAlias = Literal["agent", "turn", "program", "session", "request", "chat"]
"""The kinds of activity: an agent, a turn, a program or a session; a request to a server; or one to a model."""


@dataclass(frozen=True, slots=True)
class ActivityEvent:
    """Something that happened to what makes calls, sent to the sinks that have `emit_activity`.

    A run that is taken up again, perhaps in another process, is opened again under its id; the `outcome` it was closed
    with before, `suspended` or `paused`, says that it was not over.

    Attributes:
        activity_id: Names the run; a turn and the call that it makes have the same id.
        parent_id: The run or the call inside which it goes on; None at the top.
        name: The agent's, the turn's tool, or what else it is called.
        data: JSON shapes, secrets hidden; what is in it depends on `kind` and `run`. A closed run has `outcome`,
            `error` and `duration_ms`.
    """

    kind: ActivityEventKind
    activity: ActivityKind
    activity_id: str
    parent_id: str | None
    name: str
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON shapes."""
        return {
            "kind": self.kind,
            "activity": self.activity,
            "activity_id": self.activity_id,
            "parent_id": self.parent_id,
            "name": self.name,
            "at": self.at.isoformat(),
            "data": dict(self.data),
        }
