"""Ways in of a host's own: the pipeline's steps, the command line, and turns that an agent runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from toolcrib.approvals import approve_all, deny_all
from toolcrib.calls import Denial, Grant, Outcome, Suspended, outcome_from_dict
from toolcrib.cli import app
from toolcrib.errors import UnknownTool
from toolcrib.pipeline import is_call
from toolcrib.testing._ways import RunWay, Way, WayRequest, turn_outcome, unknown_of
from toolcrib.turns import Agent, Turn

__all__ = ["AgentWay", "CommandLineWay", "StepsWay"]

_GRANT_OPTIONS = {field.name for field in fields(Grant)} - {"tool", "by"}  # of `Agent.approve`


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
                agent.approve(replace(waiting.request, tool=grant.tool), grant.by, **options)
            case Denial() as denial:
                agent.deny(waiting.request, message=denial.message, by=denial.by)
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
        outcome = request.ended(turn_outcome(turn))
        if isinstance(outcome, Suspended):
            self._stopped[outcome.request.id] = agent
        return outcome
