"""Options of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from toolcrib._numbers import require_numbers
from toolcrib.errors import explain_options


@explain_options()
@dataclass(frozen=True, slots=True)
class TaskOptions:
    """How calls become tasks, which go on after their request was answered.

    A client of the revision 2025-11-25 asks for a task with its call. For one of the newer generation, which declares
    the extension for tasks, a call becomes one when it takes long or waits for a person. A tool's tags say otherwise:
    `task` has its calls be tasks at once where the client can have them, `task_required` refuses clients that cannot,
    and `task_forbidden` makes none of them a task.

    Attributes:
        after: Seconds after which a call of a newer client becomes a task.
        ttl: For how long a task is kept, from its beginning; one that waits for a person at least as long as its
            suspended call. A client may ask for another time.
        longest_ttl: The longest time that a client may ask for.
        most: Tasks of one principal that are kept at a time; calls beyond it fail, or are answered when they end.
        poll: Milliseconds after which a client should ask again.
    """

    after: float = 2.0
    ttl: timedelta = timedelta(days=1)
    longest_ttl: timedelta = timedelta(days=7)
    most: int = 1_000
    poll: int = 1_000

    def __post_init__(self) -> None:
        sizes = {"most": 1, "poll": 1}
        require_numbers("TaskOptions", self, sizes, seconds_from_zero=("after",), spans=("ttl", "longest_ttl"))
        if self.ttl > self.longest_ttl:
            raise ValueError(f"TaskOptions: ttl must be at most longest_ttl, {self.longest_ttl}, and is {self.ttl}")
