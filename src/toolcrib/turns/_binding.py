"""Binding of turns: the pipeline and the run that they go through, their hooks, and their clocks."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

from toolcrib.approvals import answer_of
from toolcrib.calls import ApprovalRequest, Denial, Failed, Grant, Outcome, Rejected, Suspended, error_of
from toolcrib.hooks import Hook, HookRaised, HookType, Observers, TurnHook, ambient_context, fire
from toolcrib.pipeline import Pipeline, Run, Stored, run_for
from toolcrib.record import ActivityTrace, trace_activity, wants_activities
from toolcrib.schema import RunContext
from toolcrib.tools import Deadline, Tool
from toolcrib.toolsets import Toolset
from toolcrib.turns._stop_reason import StopReason

Table: TypeAlias = Mapping[HookType, tuple[Hook[Any], ...]]
UNFOLLOWED = nullcontext(None)


class ObservedTurn(Protocol):
    """A turn, as far as its hooks are concerned."""

    @property
    def id(self) -> str: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def tags(self) -> frozenset[str]: ...
    @property
    def own_observers(self) -> Observers | None: ...
    @property
    def stop_reason(self) -> str | None: ...
    @property
    def outcome(self) -> Outcome | None: ...


class _Unbounded:
    """The clock of a turn that may take any time; does what a `Deadline` does that never passes."""

    __slots__ = ()

    def begin(self) -> None:
        """Record that a step begins."""

    def rest(self) -> None:
        """Record that a step is over."""

    def close(self) -> None:
        """Record that no step comes any more."""

    def __enter__(self) -> _Unbounded:
        return self

    def __exit__(self, *error: object) -> None:
        return None


Clock: TypeAlias = Deadline | _Unbounded
UNBOUNDED = _Unbounded()


class TurnBinding:
    """The pipeline and the run that turns are part of, with what their hooks are given.

    Args:
        pipeline: Runs the tools.
        run: The run.
        names: The pipeline's names of tools; a tool that is not in here has its own.
        ctx: The context that hooks are supplied from; the surrounding run's when None.
        parent: Whose turn hooks reach each turn, besides its own and the global ones.

    Attributes:
        followed: Whether a sink takes the events of each turn.
        stored: The call that the turn goes on with, where it was stored; None to make it anew.
        taken_up: Whether its turns began before, in an execution that was cut off: hooks were called then.
    """

    __slots__ = (
        "_around",
        "_merged",
        "_parent",
        "_runs",
        "ctx",
        "followed",
        "names",
        "pipeline",
        "run",
        "stored",
        "taken_up",
    )

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        names: Mapping[Tool[..., Any], str] | None = None,
        *,
        ctx: RunContext[Any] | None = None,
        parent: Observers | None = None,
    ) -> None:
        self.pipeline, self.names, self.ctx, self._parent = pipeline, names or {}, ctx, parent
        self._around = run
        self.stored: Stored | None = None
        self.taken_up = False
        self.followed = bool(pipeline.sinks or run.sinks) and wants_activities(pipeline.sinks, run.sinks)
        self._runs: dict[str, ActivityTrace] = {}
        options: dict[str, Any] = {}
        if run.approver is not None:
            options["approver"] = self._ask
        if self.followed and run.channel.parent_id is not None:
            options["parent_id"] = None  # its calls are those of turns
        self.run = run.view(**options) if options else run
        self._merged: dict[frozenset[str], tuple[object, Observers]] = {}

    def table(self, turn: ObservedTurn) -> Table:
        """Return the hooks of a turn by event: its own, its agent's, the global ones; each function once."""
        parent, observers = self._parent, turn.own_observers
        if parent is None or not parent.entries:
            if observers is None:
                observers = _without_hooks(turn.tags) if turn.tags else _UNTAGGED
            return observers.table()
        if observers is not None:
            return _merge(turn.tags, observers, parent).table()
        cached = self._merged.get(turn.tags)
        if cached is None or cached[0] is not parent.entries:
            cached = self._merged[turn.tags] = (parent.entries, _merge(turn.tags, parent))
        return cached[1].table()

    async def fire_begin(self, turn: ObservedTurn, table: Table) -> None:
        """Call the hooks in `table` as a turn begins, unless they were called before it was cut off."""
        if not self.taken_up:
            await fire_event(table, TurnHook.BEFORE_RUN, turn, ctx=self.ctx)

    async def fire_end(self, turn: ObservedTurn, table: Table, error: Exception | None) -> None:
        """Call the hooks in `table` as a turn ends, which raised `error` if it raised anything."""
        ctx, reason, outcome = self.ctx, turn.stop_reason, turn.outcome
        if reason is StopReason.COMPLETED:
            await fire_event(table, TurnHook.AFTER_RUN, turn, ctx=ctx)
        elif reason is StopReason.TIMEOUT:
            await fire_event(table, TurnHook.ON_TIMEOUT, turn, ctx=ctx)
        elif reason is StopReason.ERROR and (error is not None or outcome is not None):
            raised = error if error is not None else error_of(cast("Outcome", outcome))
            await fire_event(table, TurnHook.ON_ERROR, turn, raised, ctx=ctx)
        await fire_event(table, TurnHook.ON_COMPLETE, turn, reason, ctx=ctx)

    @contextmanager
    def follow(
        self, turn: ObservedTurn, tool: Tool[..., Any], arguments: Mapping[str, Any]
    ) -> Generator[ActivityTrace | None]:
        """Emit that a turn begins, and after the body how it ended."""
        name = self.names.get(tool) or tool.name
        run = trace_activity(
            "turn",
            turn.tool_name,
            self._around,
            self.pipeline.sinks,
            activity_id=turn.id,
            about=lambda: {
                "tool": name,
                "arguments": tool.spec.canonical(_unread(arguments)).shown,
                "call_id": turn.id,
            },
        )
        if run is None:
            yield None
            return
        self._runs[turn.id] = run
        error: BaseException | None = None
        try:
            yield run
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._runs.pop(turn.id, None)
            ended = turn.stop_reason or "cancelled"
            run.closed(str(ended), _problem_text(turn.outcome, error), **_waits_for(turn.outcome))

    async def _ask(self, request: ApprovalRequest) -> Grant | Denial | None:
        approver, run = self._around.approver, self._runs.get(request.call_id)
        if approver is None:
            return None
        if run is not None:
            run.changed(state="suspended", request_id=request.id)
        try:
            return await answer_of(approver, request)
        finally:
            if run is not None:
                run.changed(state="running")


def _unread(value: Any) -> Any:
    """Return a host's arguments with the name of its type in the place of what can be read only once."""
    match value:
        case Iterator():
            return f"<{type(cast('object', value)).__qualname__}>"
        case Mapping():
            return {name: _unread(part) for name, part in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [_unread(part) for part in cast("Sequence[Any]", value)]
        case _:
            return value


def _problem_text(outcome: Outcome | None, error: BaseException | None) -> str | None:
    """Return the error of a turn, in words; None for a turn without one."""
    if isinstance(outcome, Failed):
        return outcome.message
    if isinstance(outcome, Rejected):
        return outcome.reason
    return f"{type(error).__name__}: {error}" if isinstance(error, Exception) else None


def _waits_for(outcome: Outcome | None) -> dict[str, Any]:
    return {"request_id": outcome.request.id} if isinstance(outcome, Suspended) else {}


_UNTAGGED = Observers()


@lru_cache(maxsize=1024)
def _without_hooks(tags: frozenset[str]) -> Observers:
    """Return the table of a turn that has no hooks of its own: one for all of them with these tags."""
    return Observers(tags)


def _merge(tags: frozenset[str], *several: Observers) -> Observers:
    merged = Observers(tags)
    for observers in several:
        merged.adopt(observers)
    return merged


@lru_cache(maxsize=256)
def _pipeline_of(tool: Tool[..., Any]) -> Pipeline:
    """Return the pipeline of a tool alone, whose own gates are all that count."""
    return Pipeline([tool])


def names_in(toolset: Toolset) -> dict[Tool[..., Any], str]:
    """Return the tools of a toolset with their names."""
    names: dict[Tool[..., Any], str] = {}
    for name, entry in toolset.entries.items():
        names.setdefault(entry.tool, name)
    return names


def lone_binding(tool: Tool[..., Any], run: Run | None = None, pipeline: Pipeline | None = None) -> TurnBinding:
    """Return the binding of a turn that no agent runs.

    Args:
        run: The run to be part of; without one, that of the tool which runs this code, or a plain one.
        pipeline: Runs the tool with the gates of its toolset; without one, only the tool's own gates count.
    """
    around = ambient_context() if run is None else None
    part = run_for(run, "turn") if around is None else run_for(None, "turn", provide=around.provided)
    if pipeline is not None:
        pipeline.check_run(part)
        return TurnBinding(pipeline, part, names_in(pipeline.toolset))
    return TurnBinding(_pipeline_of(tool), part)


async def fire_event(table: Table, event: HookType, *about: Any, ctx: RunContext[Any] | None = None) -> None:
    """Call the hooks of one event; what one of them raises comes out as it is."""
    hooks = table.get(event)
    if hooks is None:
        return
    try:
        await fire(hooks, about, ctx=ctx)
    except HookRaised as raised:
        raise raised.error from None
