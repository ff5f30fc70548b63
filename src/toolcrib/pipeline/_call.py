"""Call: one request to run a tool, from its arrival to its record, as adapters and executors read it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from toolcrib.calls import ApprovalRequest, DecisionNote, Grant, Outcome, ToolCall
from toolcrib.pipeline._run import Run
from toolcrib.tools import Tool

__all__ = ["Call", "CallState", "Executor"]

CallState: TypeAlias = Literal["received", "admitted", "suspended", "executing", "executed", "closed"]
"""Where a call stands: see the states of a call."""


class Call(Protocol):
    """One request to run a tool, as an adapter reads it. Only the pipeline moves it.

    Its states are `received`, `admitted` (it passed every gate), `executing`, `executed` and `closed` (its record is
    made), or `suspended` while it waits for a person.
    """

    @property
    def id(self) -> str:
        """The id that approvals and records are bound to."""
        ...

    @property
    def name(self) -> str:
        """The tool's name in the toolset."""
        ...

    @property
    def tool(self) -> Tool[..., Any]:
        """The tool."""
        ...

    @property
    def run(self) -> Run:
        """The run that the call belongs to."""
        ...

    @property
    def received(self) -> ToolCall:
        """The call as it came, or as an approver or the host changed it."""
        ...

    @property
    def state(self) -> CallState:
        """Where the call stands."""
        ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """A copy of the arguments as Python values; final once the call is admitted."""
        ...

    @property
    def raw_arguments(self) -> Any:
        """What the input is made of: the arguments as they came, or as a hook edited them."""
        ...

    @property
    def notes(self) -> tuple[DecisionNote, ...]:
        """What the decision hooks decided, in order."""
        ...

    @property
    def request(self) -> ApprovalRequest | None:
        """What a person was asked; None for a call that needed no approval so far."""
        ...

    @property
    def grant(self) -> Grant | None:
        """By what it may run; None for a call that needed no approval so far."""
        ...

    @property
    def begun(self) -> bool:
        """Whether its tool, or the host in its place, has begun: it is not executed a second time."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """What it was closed or suspended with; None before."""
        ...

    @property
    def value(self) -> Any:
        """What the tool returned, once the call is executed."""
        ...

    @property
    def error(self) -> Exception | None:
        """What the tool raised; None when it returned."""
        ...

    @property
    def is_executable(self) -> bool:
        """Whether the pipeline can execute it: a declared input has no function, unless something wraps it."""
        ...

    @property
    def waits_for_post_hooks(self) -> bool:
        """Whether `finish` has a post hook to await."""
        ...

    def parse(self) -> BaseModel:
        """Return the input as it is now, as a new object."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return what `Pipeline.recover` needs, as JSON shapes; the arguments are the real ones.

        Raises:
            ResultNotSerializable: The call is executed, and what its tool returned has no JSON form.
        """
        ...


class Executor(Protocol):
    """Wraps the execution of a tool, and nothing else: the seam for durable engines."""

    async def execute(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `run()` returns; run it again only when the tool is idempotent and nothing was yielded."""
        ...
