"""Workflow of a turn: one execution of it, which goes on from what was recorded and records what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.calls import Completed, Failed, Outcome, StoredFields, Suspended, lenient, versioned
from toolcrib.durable._host import WAITING, WAITS_FOR, TurnContext, WorkHost
from toolcrib.durable._outage import readable
from toolcrib.durable._turn_execution import TurnExecution, step_name
from toolcrib.errors import ToolcribError, exception_of
from toolcrib.pipeline import Run
from toolcrib.turns import Agent, AgentRun, StopReason, Turn, TurnBinding, TurnQueue


class TurnWorkflow:
    """A turn on its way: first what happens until its tool may run, in a step; then the rest.

    The rest is recorded with the workflow's own outcome, which costs no write more; it is a step of its own where
    something is left to do after it, or where it may have been begun before.

    Args:
        host: The engine that runs it.
        agent: Whose turn it is.
        context: The agent's memory; None where the turn cannot read it.
        execution: The recorder of the turn's call.
    """

    def __init__(
        self,
        host: WorkHost,
        agent: Agent,
        context: TurnContext | None,
        execution: TurnExecution,
        turn: Turn[Any],
        data: Mapping[str, Any],
    ) -> None:
        self._host, self._agent, self._context, self._execution = host, agent, context, execution
        self._turn, self._data = turn, data
        self._task: asyncio.Task[dict[str, Any]] | None = None
        self._values: asyncio.Queue[tuple[bool, Any]] | None = asyncio.Queue() if turn.tool.is_watched else None

    async def run(self, binding: TurnBinding) -> dict[str, Any]:
        """Run the turn over `binding`, and return its record."""
        host = self._host

        async def admit() -> dict[str, Any]:
            task = self._begin(binding)
            await asyncio.wait({task, self._execution.reached}, return_when=asyncio.FIRST_COMPLETED)
            return self._execution.reached.result() if self._execution.reached.done() else {"ended": task.result()}

        async def execute() -> dict[str, Any]:
            if self._task is None:  # an earlier execution began it, unless that one has the work now and is at it
                await host.hold()
                binding.stored, binding.taken_up = state["call"], True
                request = cast("Mapping[str, Any] | None", state["call"]["request"])
                self._execution.asked = None if request is None else request["id"]
                self._execution.begun |= await host.begun_before({self._turn.id: state})
                if "failed" in state or await host.failed_before():
                    self._execution.retried.add(self._turn.id)
            return await self._result_of(self._begin(binding))

        try:
            state = StoredFields("TurnState", await host.step(step_name("admit", self._turn, self._data), admit))
            if "ended" in state:
                return state["ended"]
            StoredFields("Call", state["call"])  # a newer one is left, and its execution records nothing
            name = step_name("execute", self._turn, self._data)
            if self._task is None or self._values is not None:
                return await host.step(name, execute)
            return await host.end(name, execute)
        finally:
            if self._task is not None and not self._task.done():
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    def _begin(self, binding: TurnBinding) -> asyncio.Task[dict[str, Any]]:
        if self._task is None:
            self._task = asyncio.create_task(self._drive(binding), name=f"toolcrib: turn of {self._turn.tool_name}")
        return self._task

    async def _result_of(self, task: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
        self._execution.recorded.set()
        values = self._values
        await self._host.watch_cancel(task if values is None else asyncio.create_task(self._pour(values, task)))
        if isinstance(self._turn.outcome, Failed):
            await self._host.requeue(self._turn.outcome)
        return task.result()

    async def _pour(self, values: asyncio.Queue[tuple[bool, Any]], task: asyncio.Task[Any]) -> None:
        """Write a stream's values down as they come, until its turn has ended."""
        number = 0
        try:
            while (item := await values.get())[0]:
                await self._host.stream(number, item[1])
                number += 1
            await asyncio.wait({task})
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _drive(self, binding: TurnBinding) -> dict[str, Any]:
        """Run the turn as an agent runs it, as far as the pipeline lets it, and return its record."""
        turn, execution, context = self._turn, self._execution, self._context
        values: list[Any] = []
        error: Exception | None = None
        run = AgentRun(self._agent, TurnQueue(), Run(), wait=False)
        try:
            if context is not None:
                await readable(lambda: context.enter(execution))
            async for value in run.run_turn(turn, binding):
                if self._values is None:
                    values.append(lenient(value, media=True))
                else:
                    self._values.put_nowait((True, lenient(value, media=True)))
        except BaseException as raised:  # of the tool or a hook: no caller is there to catch it, so it is recorded
            error = exception_of(raised)
        finally:
            execution.over = True
            if self._values is not None:
                self._values.put_nowait((False, None))
        execution.finished = run.finished
        return self._record(values, error)

    def _record(self, values: list[Any], error: Exception | None) -> dict[str, Any]:
        turn, execution = self._turn, self._execution
        outcome = turn.outcome
        if outcome is None or (error is not None and not isinstance(outcome, Failed)):
            outcome = _failed(turn, error)
        record: dict[str, Any] = {
            "outcome": _portable(outcome, values, streamed=self._values is not None),
            "stop_reason": (turn.stop_reason or StopReason.ERROR).value,
            "values": values,
            "children": execution.children,
            "context": execution.changes,
            "approval": execution.approval,
            "finished": execution.finished,
        }
        if isinstance(outcome, Suspended):
            record |= {WAITS_FOR: outcome.request.id, WAITING: outcome.to_dict()}
        return versioned("TurnRecord", {name: value for name, value in record.items() if value})


def _portable(outcome: Outcome, values: list[Any], *, streamed: bool) -> dict[str, Any]:
    """Return an outcome for the record; a value that went where it belongs is not in it twice."""
    data = outcome.to_dict()
    if isinstance(outcome, Completed) and not streamed and not values:
        data["value"] = None  # a turn, or something for the context
    return data


def _failed(turn: Turn[Any], error: Exception | None) -> Failed:
    code = error.code if isinstance(error, ToolcribError) else "error"
    return Failed(turn.tool_name, turn.id, code, str(error or "it has no outcome"), type(error).__name__)
