"""Ways in: each way of calling a tool, behind one interface, so that one test holds for all of them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from toolcrib.calls import (
    CallEvent,
    Denial,
    Failed,
    Grant,
    Media,
    Outcome,
    Suspended,
    ToolCall,
    Yielded,
    outcome_from_dict,
    render,
)
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.errors import UnknownTool
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.record import Sink
from toolcrib.sandbox import sandbox_named
from toolcrib.testing._fakes import RecordingSink
from toolcrib.toolsets import Toolset, ToolsetLike
from toolcrib.turns import Turn

Ability: TypeAlias = Literal["model", "json", "run", "id", "answer", "stored", "concurrent", "cancel", "media"]
"""An ability that some ways in have and others lack.

- `model`: its arguments are a model's, so that they are validated and unknown ones refused.
- `json`: they come as JSON text, which may be malformed.
- `run`: several calls belong to one run, whose limits, dependencies and approver the test chooses.
- `id`: the call has the id that the test gave it.
- `answer`: a suspended call is resumed with a grant or a denial.
- `stored`: the test may change what was kept of a suspended call before it is resumed.
- `concurrent`: calls run at a time in one event loop.
- `cancel`: a call can be cancelled.
- `media`: the caller is sent an image itself, and not a placeholder.
"""


@dataclass(frozen=True, slots=True)
class WayRequest:
    """A request of a test: one call, for a way in to make.

    Attributes:
        call: The call; or the suspended one that `answer` is for.
        records: Where a way in that has no part in `run` puts the records of its calls, as JSON shapes.
        shown: Where a way in puts what its caller is given, as text: media as base64.
    """

    toolset: Toolset
    call: ToolCall | Suspended
    run: Run
    answer: Grant | Denial | None
    records: list[dict[str, Any]]
    shown: list[str]

    @property
    def pipeline(self) -> Pipeline:
        """A pipeline of the tools."""
        return Pipeline(self.toolset)

    @property
    def new(self) -> ToolCall:
        """The call, for a way in that only makes new ones."""
        if isinstance(self.call, Suspended):
            raise TypeError("this way in cannot resume a suspended call; ask for the ability `answer`")
        return self.call

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as values; of a suspended call those that a person is shown."""
        if isinstance(self.call, Suspended):
            return dict(self.call.request.arguments)
        raw = self.call.arguments
        return dict(raw) if isinstance(raw, Mapping) else json.loads(raw)

    @property
    def json_arguments(self) -> dict[str, Any]:
        """The arguments as JSON shapes, as a model would send them, which knows secrets as text."""
        return json.loads(json.dumps(self.arguments, default=lambda value: value.get_secret_value()))

    def ended(self, outcome: Outcome) -> Outcome:
        """Return the outcome, for a way in whose caller is given it as it is."""
        shown = render(outcome)
        media = [part.base64 for part in shown.parts if isinstance(part, Media)]
        self.shown.append("\n".join([shown.text, *media]))
        return outcome

    def turn(self) -> Turn[Any]:
        """Return the call as a turn; raises UnknownTool."""
        name = self.call.tool if isinstance(self.call, Suspended) else self.call.name
        turn = Turn(self.toolset[name].tool, kwargs=self.arguments)
        if isinstance(self.call, Suspended):
            turn.outcome = self.call
        return turn


class Way(ABC):
    """A way of calling a tool, for tests that no gate is missing on it.

    Calling it with tools gives a `Caller` of these tools. A new way in is a subclass with one method, put into
    `WAYS`.
    """

    title: str
    abilities: ClassVar[frozenset[Ability]] = frozenset()

    def __call__(self, tools: ToolsetLike, *, hooks: HookSet | None = None, **run: Any) -> Caller:
        """Return the caller of these tools; `run` are the fields of the `Run` that its calls belong to."""
        toolset = Toolset.of(tools)
        return Caller(self, toolset if hooks is None else toolset.with_hooks(hooks), run)

    @abstractmethod
    async def carry(self, request: WayRequest) -> Outcome:
        """Make the call as this way in makes one, and return its outcome."""

    def __repr__(self) -> str:
        return self.title


class _RecordsTo:
    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._records = records

    def emit(self, event: CallEvent) -> None:
        """Keep the record of a call that ended."""
        if event.record is not None:
            self._records.append(event.record.to_dict())


class Caller:
    """A caller of tools through one way in, in one run.

    Attributes:
        run: The run; for a way in without the ability `run`, only its approver counts.
        records: The records of the calls that ended, as JSON shapes.
        shown: The texts that the caller was given for each call that ended: media as base64.
    """

    def __init__(self, way: Way, toolset: Toolset, options: Mapping[str, Any]) -> None:
        self._way, self._toolset = way, toolset
        self.records: list[dict[str, Any]] = []
        self.shown: list[str] = []
        sinks: tuple[Sink, ...] = (*options.get("sinks", ()), _RecordsTo(self.records))
        option: Channel = options.get("channel", Channel())
        channel = replace(option, entry=way.title) if option.entry == Channel.entry else option
        merged: dict[str, Any] = {**options, "channel": channel, "sinks": sinks}
        self.run = Run(**merged)

    async def call(self, name: str, arguments: str | Mapping[str, Any] = "{}", *, id: str | None = None) -> Outcome:
        """Call a tool with arguments as JSON text or as values, and return the outcome."""
        call = ToolCall(name, arguments) if id is None else ToolCall(name, arguments, id)
        return await self._way.carry(WayRequest(self._toolset, call, self.run, None, self.records, self.shown))

    async def answer(self, suspended: Outcome, answer: Grant | Denial | None) -> Outcome:
        """Resume a suspended call with an answer, and return the outcome; raises TypeError for another outcome."""
        if not isinstance(suspended, Suspended):
            raise TypeError(f"the call was not suspended: {suspended}")
        return await self._way.carry(WayRequest(self._toolset, suspended, self.run, answer, self.records, self.shown))


class RunWay(Way):
    """The pipeline itself."""

    title = "run"
    abilities = frozenset({"model", "json", "run", "id", "answer", "stored", "concurrent", "cancel", "media"})

    async def carry(self, request: WayRequest) -> Outcome:
        return request.ended(await request.pipeline.run(request.call, request.run, grant=request.answer))


class StreamWay(Way):
    """The pipeline's stream, values as they come."""

    title = "stream"
    abilities = RunWay.abilities

    async def carry(self, request: WayRequest) -> Outcome:
        async with aclosing(request.pipeline.stream(request.call, request.run, grant=request.answer)) as items:
            async for item in items:
                if not isinstance(item, Yielded):
                    return request.ended(item)
        raise AssertionError("the stream ended without an outcome")


class TurnWay(Way):
    """A turn that its host runs."""

    title = "turn"
    abilities = frozenset({"run", "answer", "stored", "concurrent", "cancel", "media"})

    async def carry(self, request: WayRequest) -> Outcome:
        try:
            turn = request.turn()
        except UnknownTool as error:
            return unknown_of(request, error)
        options: dict[str, Any] = {"run": request.run, "grant": request.answer, "pipeline": request.pipeline}
        try:
            if turn.tool.is_streaming:
                async for _ in turn.yielding(**options):
                    pass
            else:
                await turn.returning(**options)
        except Exception:
            if turn.outcome is None:  # a hook's error, of which there is no outcome
                raise
        return request.ended(turn_outcome(turn))


class CodeWay(Way):
    """A program of one line, which calls the tool.

    Args:
        sandbox: Where it runs, by name; the process's own when None.
    """

    abilities = frozenset({"model", "run", "concurrent", "cancel"})

    def __init__(self, sandbox: str | None = None) -> None:
        self._sandbox = sandbox
        self.title = "code" if sandbox is None else f"code in {sandbox}"

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        sandbox = None if self._sandbox is None else sandbox_named(self._sandbox)
        result = await self._execute(Toolkit(request.toolset, sandbox=sandbox), program_of(request), run)
        return outcome_of(request, watch, result)

    async def _execute(self, toolkit: Toolkit, code: str, run: Run) -> ExecutionResult:
        """Run the program as this way in runs one."""
        return await toolkit.execute_async(code, run)


def turn_outcome(turn: Turn[Any]) -> Outcome:
    """Return the outcome of a turn's call."""
    if turn.outcome is None:
        raise AssertionError(f"the turn of `{turn.tool_name}` has no outcome")
    return turn.outcome


def unknown_of(request: WayRequest, error: UnknownTool) -> Failed:
    """Return the outcome of a call that names no tool, for a way in whose turns cannot be made then."""
    return Failed(error.tool, request.new.id, error.code, str(error), "UnknownTool", exception=error)


def program_of(request: WayRequest) -> str:
    """Return the program that makes the call."""
    call = request.new
    code = f"{call.name}(**{request.arguments!r})"
    streams = call.name in request.toolset and request.toolset[call.name].tool.is_streaming
    return f"list({code})" if streams else code


def outcome_of(request: WayRequest, watch: RecordingSink, result: ExecutionResult | str) -> Outcome:
    """Return the outcome of the call, from its record."""
    shown = result if isinstance(result, str) else result.text()
    request.shown.append(shown)
    if watch.records:
        return outcome_from_dict(watch.records[-1].outcome)
    # Python itself said no: a tool that is not offered is a name that does not exist
    return Failed(request.new.name, request.new.id, "unknown_tool", shown, "NameError")
