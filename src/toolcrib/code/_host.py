"""Takes each call of a program to the pipeline, and keeps what became of it."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Denial,
    Failed,
    Grant,
    Outcome,
    Suspended,
    ToolCall,
    cut,
    new_call_id,
)
from toolcrib.code._arguments import ArgumentNames
from toolcrib.code._program_trace import UNFOLLOWED, FollowedProgram
from toolcrib.code._replies import reply_to
from toolcrib.errors import InvalidArguments, ResultNotSerializable, SchemaError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.sandbox import Emit, Raised, Reply, Value, memory_size
from toolcrib.schema import ToolSpec

__all__ = ["ProgramHost", "ProgramTool"]

_KEPT = 100_000  # characters of one result in `tool_calls`
_KEPT_IN_ALL = 32_000_000  # bytes of memory, about, that all arguments and results there may take
_BRIEF = 300  # characters of an error or a result in there from then on


class ProgramTool:
    """One tool as programs call it."""

    __slots__ = ("_names", "name", "spec")

    def __init__(self, name: str, spec: ToolSpec) -> None:
        self.name, self.spec = name, spec
        self._names: ArgumentNames | None = None

    def bind(self, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name; raises InvalidArguments when they cannot be named."""
        if not args:
            return kwargs
        if self._names is None:
            try:
                self._names = ArgumentNames(self.name, self.spec)
            except SchemaError:  # the pipeline says so, with the parameter's name
                return kwargs
        return self._names.bind(args, kwargs)

    def shown(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the arguments for a log: without secrets, None when they might hold one."""
        try:
            if not self.spec.has_secrets:
                return arguments
            return self.spec.dump(self.spec.validate_python(arguments), redact=True)
        except (InvalidArguments, SchemaError):
            return None


class ProgramHost:
    """The host of one program.

    Attributes:
        calls: The program's calls so far, as `ExecutionResult.tool_calls` has them.
        suspended: What waits for a person.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        tools: Mapping[str, ProgramTool],
        on_output: Callable[[str, str], None] | None = None,
        followed: FollowedProgram = UNFOLLOWED,
    ) -> None:
        self._pipeline, self._scope, self._tools, self._on_output = pipeline, run, tools, on_output
        self._followed = followed
        self.calls: list[dict[str, Any]] = []
        self.suspended: list[ApprovalRequest] = []
        self._room = _KEPT_IN_ALL

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Make one call of the program."""
        told = self._told(name, new_call_id())
        _, reply = await self._carry(told, self._tools[name], args, kwargs, lambda call: self._run(call, emit))
        return reply

    def _told(self, name: str, call_id: str) -> dict[str, Any]:
        """Return what is told of a call that begins."""
        told: dict[str, Any] = {
            "id": call_id,
            "name": self._tools[name].name,
            "arguments": None,
            "outcome": "cancelled",
            "duration_ms": 0.0,
        }
        self.calls.append(told)
        return told

    async def _carry(
        self,
        told: dict[str, Any],
        tool: ProgramTool,
        args: list[Any],
        kwargs: dict[str, Any],
        run: Callable[[ToolCall], Awaitable[Outcome]],
    ) -> tuple[Outcome, Reply]:
        """Have `run` bring a call to its outcome, and tell what it came to."""
        began = time.perf_counter()
        try:
            try:
                arguments = tool.bind(args, kwargs)
            except InvalidArguments as error:
                arguments = {}
                outcome: Outcome = _unnamed(tool.name, told["id"], error)
            else:
                told["arguments"] = self._fitting(tool.shown(arguments), None)
                outcome = await run(ToolCall(tool.name, arguments, told["id"]))
        finally:
            told["duration_ms"] += (time.perf_counter() - began) * 1000
        reply = reply_to(outcome, arguments, tool.spec)
        self._note(told, outcome, reply)
        return outcome, reply

    async def _run(
        self, call: ToolCall | Suspended, emit: Emit | None, answer: Grant | Denial | None = None
    ) -> Outcome:
        """Take a call to the pipeline; the values of a stream go to the program one by one."""
        if emit is None:
            return await self._pipeline.run(call, self._scope, grant=answer)
        name, call_id = (call.tool, call.call_id) if isinstance(call, Suspended) else (call.name, call.id)
        most = self._pipeline.toolset[name].tool.options.max_result_chars
        ended: list[Outcome] = []
        stream = self._pipeline.stream(call, self._scope, grant=answer, ended=ended.append)
        try:
            async with aclosing(stream) as values:
                async for value in values:
                    await emit(Completed(name, call_id, value, max_result_chars=most).shown())
        except ResultNotSerializable as error:
            return Failed(name, call_id, error.code, str(error), "ResultNotSerializable", exception=error)
        return ended[0]

    def _note(self, entry: dict[str, Any], outcome: Outcome, reply: Reply) -> None:
        entry["outcome"] = outcome.kind
        entry.pop("error", None)  # that it waited
        if isinstance(reply, Value):
            kept = _kept(reply.value)
            entry["result"] = self._fitting(kept, cut(kept, _BRIEF) if isinstance(kept, str) else "[...]")
        elif isinstance(outcome, Suspended):
            entry["error"] = outcome.text()
            self.suspended.append(outcome.request)
            self._followed.waits(outcome.request)
        elif isinstance(outcome, Completed):  # with a result that cannot be told
            entry["outcome"], entry["error"] = "failed", reply.message if isinstance(reply, Raised) else ""
        else:
            text = outcome.text()
            entry["error"] = self._fitting(text, cut(text, _BRIEF))

    def _fitting(self, kept: Any, otherwise: Any) -> Any:
        """Return what is to be kept of a call, or what instead once all that is kept of the program is too much."""
        self._room -= memory_size(kept)
        return kept if self._room >= 0 else otherwise

    def output(self, text: str, stream: str) -> None:
        """Tell whoever watches what is printed."""
        if self._on_output is not None:
            self._on_output(text, stream)


def _unnamed(tool: str, call_id: str, error: InvalidArguments) -> Failed:
    return Failed(tool, call_id, error.code, str(error), "InvalidArguments", error.problems, exception=error)


def _kept(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, _KEPT)
    if not isinstance(value, list | dict):
        return value
    kept: Any = cast("Any", value)
    text = json.dumps(kept, ensure_ascii=False)
    return kept if len(text) <= _KEPT else cut(text, _KEPT)
