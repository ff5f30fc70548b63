"""Way in over an agent of another framework: what the ways of all frameworks share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.calls import ApprovalRequest, Failed, Outcome, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import Way, WayRequest

__all__ = ["Conversation", "FrameworkWay", "NotOffered"]


class NotOffered(Exception):
    """The agent itself does not know the tool that its model calls."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with an agent, which may go on with a new one.

    Attributes:
        calls: Where its suspended calls are kept.
        state: What the framework itself keeps of it.
        requests: What a person has to decide.
        shown: What the model was given for the call.
        principal: Its user, by the framework's own id, where the run has none.
    """

    calls: MemorySuspendedCalls
    state: Any = None
    requests: tuple[ApprovalRequest, ...] = ()
    shown: str = ""
    principal: str = ""


class FrameworkWay(Way):
    """An agent of a framework, whose scripted model makes one call; answered in a new agent, from what is kept."""

    def __init__(self) -> None:
        self._stopped: dict[str, Conversation] = {}  # by request

    @abstractmethod
    async def begin(self, request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> Conversation:
        """Have the model of a new agent make the call.

        Raises:
            NotOffered: The agent does not know the tool.
        """

    @abstractmethod
    async def go_on(self, request: WayRequest, run: Run, stopped: Conversation) -> Conversation:
        """Go on with a conversation that waits for an answer, in a new agent; `request.answer` is the answer.

        Raises:
            ApprovalError: Nothing waits for this answer.
            NotOffered: The agent does not know the tool.
        """

    async def carry(self, request: WayRequest) -> Outcome:
        watch, made = RecordingSink(), request.call
        run = request.run.with_sinks(watch)
        try:
            if isinstance(made, ToolCall):
                came = await self.begin(request, run, MemorySuspendedCalls())
            else:
                stopped = self._stopped[made.request.id]
                await _put_back(made, request.run.principal or stopped.principal, stopped)
                came = await self.go_on(request, run, stopped)
        except ApprovalError as error:
            return _failed(request, error.code, str(error), error)
        except NotOffered:
            return _not_offered(request)
        if came.requests:
            suspended = await _kept(came.requests[0], request.run.principal or came.principal, came)
            self._stopped[suspended.request.id] = came
            return suspended
        if isinstance(made, Suspended) and request.answer is None and not watch.records:
            return made
        request.shown.append(came.shown)
        return outcome_from_dict(watch.records[-1].outcome) if watch.records else _not_offered(request)


async def _put_back(made: Suspended, principal: str, stopped: Conversation) -> None:
    """Keep a suspended call as the test has it now."""
    kept = await stopped.calls.find_request(principal, made.request.id)
    if kept is not None:
        await stopped.calls.keep(replace(kept, state=made.to_dict()))


async def _kept(asked: ApprovalRequest, principal: str, came: Conversation) -> Suspended:
    kept = await came.calls.find_request(principal, asked.id)
    suspended = None if kept is None else outcome_from_dict(kept.state)
    if not isinstance(suspended, Suspended):
        raise AssertionError(f"the suspended call is not kept: {suspended}")
    return suspended


def _not_offered(request: WayRequest) -> Failed:
    name = request.call.tool if isinstance(request.call, Suspended) else request.call.name
    code = "not_available" if name in request.toolset else "unknown_tool"
    return _failed(request, code, f"there is no tool `{name}`")


def _failed(request: WayRequest, code: str, message: str, error: ApprovalError | None = None) -> Failed:
    made = request.call
    name, call_id = (made.tool, made.call_id) if isinstance(made, Suspended) else (made.name, made.id)
    return Failed(name, call_id, code, message, "" if error is None else "ApprovalError", exception=error)
