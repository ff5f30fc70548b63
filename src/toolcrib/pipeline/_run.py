"""Run: what a entry opens for one run, and what is counted in it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from toolcrib.approvals import AgentContext, ApprovalStore, Approver
from toolcrib.errors import LimitReached
from toolcrib.hooks import target_name
from toolcrib.record import Sink
from toolcrib.toolsets import Selectable

__all__ = ["CallLimits", "ErrorPolicy", "Requirement", "Run", "must_call"]

ErrorPolicy: TypeAlias = Literal["message", "masked"]

_ids = itertools.count(1)
_prefix = uuid4().hex[:8]


def _new_id() -> str:
    return f"run_{_prefix}{next(_ids):x}"


def _nothing() -> dict[Any, Any]:  # calling `dict[Any, Any]` instead costs seven times as much
    return {}


def _nobody() -> set[str]:
    return set()


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The budget of a run; None is no limit.

    Attributes:
        total: Calls in the run.
        per_tool: Calls of one tool: a number for each of them, or numbers by name.
        concurrency: Executions at a time.
    """

    total: int | None = None
    per_tool: int | Mapping[str, int] | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        several = dict(self.per_tool).values() if isinstance(self.per_tool, Mapping) else (self.per_tool,)
        for name, value, least in (("total", self.total, 0), ("concurrency", self.concurrency, 1)):
            if value is not None and value < least:
                raise ValueError(f"CallLimits: {name} must be at least {least}, and is {value}")
        for value in several:
            if value is not None and value < 0:
                raise ValueError(f"CallLimits: per_tool must be at least 0, and is {value}")

    def of(self, tool: str) -> int | None:
        """Return how often one tool may be called."""
        return self.per_tool.get(tool) if isinstance(self.per_tool, Mapping) else self.per_tool


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tool that a run has to complete; made by `must_call`.

    Attributes:
        before_finish: Whether the run is unfinished without it; else it is only remarked.
    """

    tool: str
    before_finish: bool = True


def must_call(tool: Selectable, *, before_finish: bool = True) -> Requirement:
    """Require that a tool completes in a run: `Run(requirements=(must_call("save"),))`; or give its selector."""
    return Requirement(target_name(tool), before_finish)


@dataclass(slots=True)
class Run:
    """One run: an agent's, a session's, a program's. Opened by a entry, checked by the pipeline.

    Attributes:
        id: Names the run in records.
        deps: What the host gives its tools, as `ctx.deps`.
        limits: The run's budget.
        approver: Somebody who is asked at once when a call needs approval; None suspends it.
        approvals: Where answers are looked up and requests kept.
        principal: On whose behalf the calls are made.
        provide: Values for `Injectable` and `Injected` parameters, by type or name.
        sinks: Where this run's events go, besides the pipeline's own.
        entry: Which way the calls come, for the record.
        hook_errors: What an observer's exception does: `raise` it to the host, or `fail` the call, for a entry that
            answers over a protocol.
        errors: What a model is shown of an exception that was not made for it: its `message`, or a reference alone
            (`masked`), under which the host finds it in the log and in the record.
        available: The names that may be called; None for all that are not off.
        revealed: The names that were found in the run and may be called as well, in the order they were found.
        requirements: What has to be called before the run is finished; `finish` says what still lacks.
        parent_id: The program or request that makes the calls, for the record; None for whatever the code that makes
            them goes on in.
        program_id: What the next program of the run is called in records, where it has a name already; None for one
            of its own.
    """

    id: str = field(default_factory=_new_id)
    deps: Any = None
    limits: CallLimits | None = None
    approver: Approver | None = None
    approvals: ApprovalStore | None = None
    principal: str | None = None
    provide: Mapping[Any, Any] = field(default_factory=_nothing)
    sinks: tuple[Sink, ...] = ()
    entry: str = "pipeline"
    hook_errors: Literal["raise", "fail"] = "raise"
    errors: ErrorPolicy = "message"
    available: frozenset[str] | None = None
    requirements: tuple[Requirement, ...] = ()
    parent_id: str | None = None
    program_id: str | None = None
    retries: dict[str, int] = field(default_factory=_nothing)
    calls: dict[str, int] = field(default_factory=_nothing)
    completed: set[str] = field(default_factory=_nobody)
    used_grants: set[str] = field(default_factory=_nobody)
    revealed: dict[str, None] = field(default_factory=_nothing)
    _slots: list[asyncio.Semaphore] = field(default_factory=list[asyncio.Semaphore])  # copies of the run share it

    def admit(self, tool: str) -> LimitReached | None:
        """Count one call of `tool`; return the limit that forbids it, if one does."""
        limits = self.limits
        if limits is not None:
            total = sum(self.calls.values())
            if limits.total is not None and total >= limits.total:
                return LimitReached(tool, "in total", limits.total)
            most = limits.of(tool)
            if most is not None and self.calls.get(tool, 0) >= most:
                return LimitReached(tool, f"of `{tool}`", most)
        self.calls[tool] = self.calls.get(tool, 0) + 1
        return None

    def retry(self, tool: str, most: int) -> bool:
        """Count one retryable answer for `tool`; return whether the model may try again."""
        used = self.retries[tool] = self.retries.get(tool, 0) + 1
        return used <= most

    def asks_for(self, tool: str) -> bool:
        """Return whether the run's deps say that this tool needs approval."""
        return isinstance(self.deps, AgentContext) and tool in self.deps.need_user_approve_tools

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Hold one of the executions that may run at a time."""
        most = self.limits.concurrency if self.limits is not None else None
        if most is None:
            yield
            return
        if not self._slots:
            self._slots.append(asyncio.Semaphore(most))
        async with self._slots[0]:
            yield

    def finish(self) -> tuple[str, ...]:
        """Return what the run still lacks, a sentence each; empty when every requirement is met."""
        return tuple(
            f"`{required.tool}` has to complete before the run is finished, and has not."
            for required in self.requirements
            if required.before_finish and required.tool not in self.completed
        )

    def remarks(self) -> tuple[str, ...]:
        """Return what was asked for and not done, though the run may finish without it; a sentence each."""
        return tuple(
            f"`{required.tool}` should have completed in the run, and has not."
            for required in self.requirements
            if not required.before_finish and required.tool not in self.completed
        )
