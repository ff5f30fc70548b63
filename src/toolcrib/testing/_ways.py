"""Ways in: each way of calling a tool, behind one interface, so that one test holds for all of them."""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import aclosing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeAlias
from uuid import uuid4

import pytest

from toolcrib.approvals import approve_all, deny_all
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
from toolcrib.cli import app
from toolcrib.errors import UnknownTool
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run, is_call
from toolcrib.record import Sink
from toolcrib.toolsets import Toolset, ToolsetLike
from toolcrib.turns import Agent, Turn

__all__ = [
    "Ability",
    "AgentWay",
    "Caller",
    "CommandLineWay",
    "RunWay",
    "StepsWay",
    "StreamWay",
    "TurnWay",
    "Way",
    "WayRequest",
    "unknown_of",
]

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


_GRANT_OPTIONS = {field.name for field in fields(Grant)} - {"tool", "approver"}  # of `Agent.approve`


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
        """Make the call as this way in makes one, and return what came of it."""

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
        shown: What the caller was given for each call that ended, as text: media as base64.
    """

    def __init__(self, way: Way, toolset: Toolset, options: Mapping[str, Any]) -> None:
        self._way, self._toolset = way, toolset
        self.records: list[dict[str, Any]] = []
        self.shown: list[str] = []
        sinks: tuple[Sink, ...] = (*options.get("sinks", ()), _RecordsTo(self.records))
        merged: dict[str, Any] = {"entry": way.title, **options, "sinks": sinks}
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


class StepsWay(Way):
    """The pipeline's three steps by hand, as a round takes them."""

    title = "steps"
    abilities = RunWay.abilities

    async def carry(self, request: WayRequest) -> Outcome:
        pipeline, run = request.pipeline, request.run
        admitted = await pipeline.admit(request.call, run, grant=request.answer)
        if not is_call(admitted):
            return request.ended(admitted)
        executed = await pipeline.execute(admitted)
        return request.ended(await pipeline.finish(executed) if is_call(executed) else executed)


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


class CommandLineWay(Way):
    """`toolcrib call`, in this process."""

    title = "command line"
    abilities = frozenset({"model", "json", "media"})

    async def carry(self, request: WayRequest) -> Outcome:
        answers: dict[object, list[str]] = {
            None: ["--suspend"],
            approve_all: ["--yes"],
            deny_all: ["--deny", request.new.name],
        }
        raw = request.new.arguments
        text = raw if isinstance(raw, str) else json.dumps(raw) if isinstance(raw, Mapping) else raw.decode()
        options = ["--json", *answers[request.run.approver]]
        return await asyncio.to_thread(self._run, request, [request.new.name, text, *options])

    def _run(self, request: WayRequest, arguments: list[str]) -> Outcome:
        if app is None:  # pyright: ignore[reportUnnecessaryComparison] -- without the extra there is none
            pytest.skip("the command line needs the extra `cli`")
        module = ModuleType(f"toolcrib_way_{uuid4().hex}")
        setattr(module, "tools", request.toolset)  # noqa: B010 -- a module has no attributes that a type checker knows
        sys.modules[module.__name__] = module
        try:
            with (
                TemporaryDirectory() as folder,
                redirect_stdout(TextIOWrapper(BytesIO(), "utf-8", write_through=True)) as out,
                redirect_stderr(StringIO()) as err,
            ):
                record = Path(folder) / "records"
                app(["call", f"{module.__name__}:tools", *arguments, "--record", str(record)], standalone_mode=False)
                lines = record.read_text("utf-8").splitlines()
        finally:
            del sys.modules[module.__name__]
        request.records.extend(map(json.loads, lines))
        out.seek(0)
        said = out.read()
        if not said:
            raise AssertionError(f"the command wrote nothing but {err.getvalue()!r}")
        return request.ended(outcome_from_dict(json.loads(said)))


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
        return request.ended(_outcome_of(turn))


class AgentWay(Way):
    """A turn that an agent runs; one that is suspended goes on in a new agent, from JSON.

    Args:
        most: How many turns the agent runs at a time.
    """

    abilities = frozenset({"run", "answer", "stored", "concurrent", "cancel", "media"})

    def __init__(self, most: int) -> None:
        self._most = most
        self._stopped: dict[str, Agent] = {}  # by request: the agent that keeps its turn
        self.title = "agent" if most == 1 else "concurrent agent"

    async def carry(self, request: WayRequest) -> Outcome:
        if isinstance(request.call, Suspended):
            agent = self._take_up(request, request.call)
            turn = next(iter(agent.turns), None)
            return request.call if turn is None else await self._run(request, agent, turn)
        agent = Agent(f"way_{uuid4().hex}", "Makes one call.", request.toolset, register=False)
        try:
            turn = request.turn()
            await agent.put(turn)
        except UnknownTool as error:
            return unknown_of(request, error)
        return await self._run(request, agent, turn)

    def _take_up(self, request: WayRequest, waiting: Suspended) -> Agent:
        """Return the agent that keeps the turn of a suspended call, with the call as it is given, and its answer."""
        saved = json.loads(json.dumps(self._stopped[waiting.request.id].to_dict()))
        [kept] = saved["suspended"]
        kept["outcome"] = waiting.to_dict()
        agent = Agent.from_dict(saved, tools=request.toolset, register=False)
        match request.answer:
            case Grant() as grant:
                options = {name: getattr(grant, name) for name in _GRANT_OPTIONS}
                agent.approve(replace(waiting.request, tool=grant.tool), grant.approver, **options)
            case Denial() as denial:
                agent.deny(waiting.request, denial.message, denial.approver)
            case None:
                pass
        return agent

    async def _run(self, request: WayRequest, agent: Agent, turn: Turn[Any]) -> Outcome:
        try:
            async for _ in agent.run(run=request.run, max_concurrency=self._most):
                pass
        except Exception:
            if turn.outcome is None:
                raise
        outcome = request.ended(_outcome_of(turn))
        if isinstance(outcome, Suspended):
            self._stopped[outcome.request.id] = agent
        return outcome


def _outcome_of(turn: Turn[Any]) -> Outcome:
    if turn.outcome is None:
        raise AssertionError(f"the turn of `{turn.tool_name}` came to no outcome")
    return turn.outcome


def unknown_of(request: WayRequest, error: UnknownTool) -> Failed:
    """Return the outcome of a call that names no tool, for a way in whose turns cannot be made then."""
    return Failed(error.tool, request.new.id, error.code, str(error), "UnknownTool", exception=error)
