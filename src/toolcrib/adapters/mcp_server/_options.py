"""How a toolset is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from toolcrib.approvals import ApprovalStore, SuspendedCallStore
from toolcrib.pipeline import CallLimits, Executor, Run
from toolcrib.record import Sink
from toolcrib.sandbox import Sandbox, SandboxName

__all__ = ["ApproveBy", "OpenRun", "ServerOptions"]

ApproveBy: TypeAlias = Literal["store", "elicit"]

OpenRun: TypeAlias = Callable[[str], Run]
"""Opens the run that all the calls of one principal belong to, given its name."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a toolset is served over MCP.

    Attributes:
        name: What the server calls itself.
        title: The same for people.
        version: Of what is served; this package's when None.
        instructions: What clients are told of the server, before the instructions of its tools.
        approve_by: Who is asked about a call that needs approval: `store` keeps the question until somebody answers it
            in `approvals`, from wherever they are; `elicit` asks the client, which nobody verifies, and falls back to
            the store where the client cannot be asked.
        approvals: Where questions and answers are kept; in memory when None.
        waiting: Where the calls are kept that wait for an answer; when None, in the database of `approvals` where that
            is one, else in memory.
        approve_with: How a person answers, told to the client; `{id}` stands for the request.
        wait: Seconds that a call waits for its answer in the store before the client is told to come back.
        kept_for: How long a call that waits can be taken up; after that the same call asks anew.
        max_pending: Requests of one principal that may wait for an answer at a time, those that the client shows as a
            form among them; None for any number. Each counts for as long as its call is kept. Calls beyond it fail.
        keys: Secrets of at least 32 bytes that seal the state which clients hand back, the first one for new states;
            servers that stand in for each other share them. A key of this process alone when empty.
        state_seconds: How long such a state is good for.
        principal: On whose behalf requests come that say nothing about it, as over stdio; the user's name when None.
        run: Opens the run of a principal, once; their calls, retries and found tools are counted there.
        limits: The budget of each principal, where `scope` is None.
        deps: What the tools get as `ctx.deps`, where `scope` is None.
        sinks: Where the events of calls go.
        executor: Wraps each execution.
        code_mode: Serve one tool that runs programs with the tools as functions, and one that finds them.
        sandbox: Where these programs run; the toolkit's own choice when None.
        search: Serve a few tools (a number says how many, True means five) and one that finds the rest.
    """

    name: str = "toolcrib"
    title: str | None = None
    version: str | None = None
    instructions: str = ""
    approve_by: ApproveBy = "store"
    approvals: ApprovalStore | None = None
    waiting: SuspendedCallStore | None = None
    approve_with: str = "toolcrib approvals approve {id}"
    wait: float = 0.0
    kept_for: timedelta = timedelta(days=7)
    max_pending: int | None = 100
    keys: Sequence[bytes | str] = ()
    state_seconds: float = 600.0
    principal: str | None = None
    run: OpenRun | None = None
    limits: CallLimits | None = None
    deps: Any = None
    sinks: tuple[Sink, ...] = ()
    executor: Executor | None = None
    code_mode: bool = False
    sandbox: Sandbox | SandboxName | None = None
    search: bool | int = False

    def __post_init__(self) -> None:
        if self.approve_by not in ("store", "elicit"):
            raise ValueError(f"approve_by is 'store' or 'elicit', not {self.approve_by!r}")
        if self.wait < 0 or self.state_seconds <= 0 or self.kept_for <= timedelta(0):
            raise ValueError("wait is at least 0 seconds; state_seconds and kept_for are more than that")
        if self.max_pending is not None and self.max_pending < 1:
            raise ValueError(f"max_pending is at least 1, and is {self.max_pending}; None is no limit")
        if self.search is not True and self.search < 0:
            raise ValueError(f"search says how many tools are listed, and is {self.search}")
        if self.code_mode and self.search:
            raise ValueError("code_mode has a search of its own: give one of code_mode and search")
