"""Queue of an agent's turns: those that wait, that run, that wait for a person. Stopping an agent loses none."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from toolcrib.approvals import require_request
from toolcrib.calls import ApprovalRequest, Denial, Grant, StoredFields, Suspended, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.tools import Tool
from toolcrib.turns._turn import Turn

END: Any = object()  # stands where a stream's values end


class Progress(Enum):
    """The progress of a turn that was taken."""

    STARTED = "started"
    DELIVERED = "delivered"  # a stream some of whose values the caller has
    ENDED = "ended"


class TurnQueue:
    """The turns of one agent.

    Attributes:
        waiting: Those to be run, in order.
        running: Those that were taken and are not done with, in the order they were taken.
        undelivered: Values that the caller has not taken yet.
        suspended: The suspended ones, by the id of their request.
        answers: The answers to requests whose turns wait to go on.
    """

    __slots__ = ("_waiters", "answers", "running", "suspended", "undelivered", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Turn[Any]] = deque()
        self.running: dict[Turn[Any], Progress] = {}
        self.undelivered: deque[tuple[Turn[Any], Any]] = deque()
        self.suspended: dict[str, tuple[Turn[Any], Suspended]] = {}
        self.answers: dict[Turn[Any], Grant | Denial] = {}
        self._waiters: list[asyncio.Future[None]] = []

    # --- a turn's way

    def add(self, turn: Turn[Any]) -> None:
        """Enqueue a turn behind the others."""
        self.waiting.append(turn)
        if self._waiters:
            self.wake()

    def take(self) -> Turn[Any] | None:
        """Return the turn that waits longest, which from now on is running; None when none waits."""
        if not self.waiting:
            return None
        turn = self.waiting.popleft()
        self.running[turn] = Progress.STARTED
        return turn

    def delivered(self, turn: Turn[Any]) -> None:
        """Record that the caller is given a value of the turn; with its only value the turn is done."""
        if turn.tool.is_watched:
            if self.running.get(turn) is Progress.STARTED:
                self.running[turn] = Progress.DELIVERED
        else:
            self.running.pop(turn, None)

    def ended(self, turn: Turn[Any]) -> None:
        """Record that the turn ran to an end: it is not to be run again."""
        self.running[turn] = Progress.ENDED
        if self.answers:
            self.answers.pop(turn, None)

    def done(self, turn: Turn[Any]) -> None:
        """Forget a turn that ended and whose values are delivered."""
        self.running.pop(turn, None)

    def settle(self, *, left: bool = False) -> None:
        """Put back in front what was interrupted, when nothing runs any more.

        Args:
            left: The caller stopped the iteration itself, so that a stream it has seen values of is not to begin again.
        """
        for turn, progress in reversed(list(self.running.items())):
            if progress is Progress.ENDED:
                if not any(owner is turn and value is not END for owner, value in self.undelivered):
                    del self.running[turn]
                continue
            del self.running[turn]
            self.undelivered = deque(item for item in self.undelivered if item[0] is not turn)
            if not (left and progress is Progress.DELIVERED):
                self.waiting.appendleft(turn)

    def restore(self, data: Mapping[str, Any], tools: Sequence[Tool[..., Any]]) -> None:
        """Restore the turns of an agent that was written down."""
        for written in data["queue"]:
            turn = Turn.from_dict(written, tools)
            self.waiting.append(turn)
            answer = data.get("answers", {}).get(turn.id)
            if answer is not None:
                kind = StoredFields(Grant, answer)["kind"]
                self.answers[turn] = (Grant if kind == "grant" else Denial).from_dict(answer)
        for suspended in (StoredFields(TurnQueue, suspended) for suspended in data.get("suspended", ())):
            turn, outcome = Turn.from_dict(suspended["turn"], tools), outcome_from_dict(suspended["outcome"])
            turn.outcome = outcome
            if isinstance(outcome, Suspended):
                self.suspend(turn, outcome)

    # --- waiting for a person

    def suspend(self, turn: Turn[Any], outcome: Suspended) -> None:
        """Keep a turn until its request is answered."""
        self.suspended[outcome.request.id] = (turn, outcome)

    def answer(self, request: ApprovalRequest | str, answer: Grant | Denial) -> None:
        """Answer a suspended turn, which is the next one then.

        Raises:
            ApprovalError: No turn waits for this answer.
        """
        key = request if isinstance(request, str) else request.id
        found = self.suspended.pop(key, None)
        if found is None:
            raise ApprovalError(answer.tool, f"no turn waits for the request {key}; it was answered, or never asked")
        self.answers[found[0]] = answer
        self.waiting.appendleft(found[0])
        self.wake()

    def request(self, key: ApprovalRequest | str) -> ApprovalRequest:
        """Return the request of a turn that is suspended, by itself or its id."""
        if isinstance(key, ApprovalRequest):
            return key
        require_request(key)
        if key not in self.suspended:
            raise ApprovalError("turn", f"no turn waits for the request {key}; it was answered, or never asked")
        return self.suspended[key][1].request

    # --- news

    def wake(self) -> None:
        """Wake those who wait for news."""
        if not self._waiters:
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def changed(self) -> None:
        """Wait for news."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def unfinished(self) -> Iterator[Turn[Any]]:
        """Yield every turn that is not done with and not suspended: those that were interrupted first."""
        yield from self.running
        yield from self.waiting
