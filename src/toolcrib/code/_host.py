"""The host of a program: takes each call to the pipeline, answers the program, and keeps a summary of the call."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

from toolcrib._arrow import is_table, table_bytes, table_facts, table_rows, table_stream, table_summary
from toolcrib._numbers import count_text
from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Failed,
    KeptResult,
    Outcome,
    Rejected,
    Suspended,
    ToolCall,
    charged,
    cut,
    new_call_id,
    render,
    render_value,
)
from toolcrib.code._activity import NO_ACTIVITY, ProgramActivity
from toolcrib.code._program_tools import ProgramTool
from toolcrib.errors import MissingExtraError, ResultNotSerializable
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.sandbox import Emit, Raised, Reply, SuspendedReply, Value, memory_size
from toolcrib.schema import ToolSpec

_RESULT_CHARS = 100_000  # of one result in a summary
_SUMMARY_BYTES = 32_000_000  # of memory, about, that all arguments and results in the summaries may take
_SHORT_CHARS = 300  # of an error or a result in a summary from then on
_MOST_SUSPENDED = 250  # about: those that run at the same time may be suspended, too
_TOO_MANY_SUSPENDED = (
    f"it did not run: {_MOST_SUSPENDED} calls of this program wait for a person already. Ask for the approval of fewer "
    "at once"
)
_EXCEPTIONS = {
    "tool_timeout": "TimeoutError",
    "unknown_tool": "NameError",
    "not_available": "PermissionError",
    "approval_error": "PermissionError",
    "result_not_serializable": "TypeError",
    "not_callable": "TypeError",
    "schema_error": "TypeError",
}
_FIRST_NAME = re.compile(r"[^.\[]*")
_MOST_CELLS = 2_000_000  # as rows: they would take a hundred bytes each in the program


class ProgramHost:
    """The host of one program.

    Attributes:
        run: The run that its calls belong to.
        calls: Summaries of the program's calls so far, as `ExecutionResult.tool_calls` has them.
        suspended: The requests of the calls that wait for a person.
        table_bytes: The bytes of tables in one result that the program can take; 0 for rows in place of tables.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        run: Run,
        tools: Mapping[str, ProgramTool],
        on_output: Callable[[str, str], None] | None = None,
        activity: ProgramActivity = NO_ACTIVITY,
    ) -> None:
        self._pipeline, self.run, self._tools, self._on_output = pipeline, run, tools, on_output
        self._activity = activity
        self.calls: list[dict[str, Any]] = []
        self.suspended: list[ApprovalRequest] = []
        self.table_bytes = 0
        self._room = _SUMMARY_BYTES

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Make one call of the program."""
        tool = self._tools[name]
        args, kwargs = tool.clipped(args, kwargs)
        summary = self._summary(name, new_call_id())
        _, reply = await self._answer(summary, tool, args, kwargs, lambda call: self._execute(call, emit))
        return reply

    def _summary(self, name: str, call_id: str) -> dict[str, Any]:
        """Return the summary of a call that begins."""
        summary: dict[str, Any] = {
            "id": call_id,
            "name": self._tools[name].name,
            "arguments": None,
            "outcome": "cancelled",
            "duration_ms": 0.0,
        }
        self.calls.append(summary)
        return summary

    async def _answer(
        self,
        summary: dict[str, Any],
        tool: ProgramTool,
        args: list[Any],
        kwargs: dict[str, Any],
        execute: Callable[[ToolCall], Awaitable[Outcome]],
    ) -> tuple[Outcome, Reply]:
        """Return the outcome that `execute` has for a call, and the program's reply; both are put into the summary."""
        began = time.perf_counter()
        arguments, fault = charged(self._read, summary, tool, args, kwargs)
        try:
            outcome = await execute(ToolCall(tool.name, arguments, summary["id"], fault=fault))
        finally:
            summary["duration_ms"] += (time.perf_counter() - began) * 1000
        tables = GivenTables(tool.name, self.table_bytes)
        if isinstance(outcome, Completed) and is_table(outcome.value):  # to copy a large one takes a while
            reply = await asyncio.to_thread(reply_to, outcome, arguments, tool.spec, tables)
        else:
            reply = reply_to(outcome, arguments, tool.spec, tables)
        summary["outcome"], summary["id"] = outcome.kind, outcome.call_id
        summary.pop("error", None)  # of an earlier run, where the call was suspended
        if isinstance(reply, Value):
            result = _shortened(reply.value)
            brief = cut(result, _SHORT_CHARS) if isinstance(result, str) else "[...]"
            summary["result"] = self._within_room(result, brief)
        elif isinstance(outcome, Suspended):
            summary["error"] = outcome.text()
            self.suspended.append(outcome.request)
            self._activity.suspended(outcome.request)
        elif isinstance(outcome, Completed):  # with a result that has no JSON form
            summary["outcome"], summary["error"] = "failed", reply.message if isinstance(reply, Raised) else ""
        else:
            text = outcome.text()
            summary["error"] = self._within_room(text, cut(text, _SHORT_CHARS))
        return outcome, reply

    def _read(
        self, summary: dict[str, Any], tool: ProgramTool, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        """Return the arguments by name, which are put into the summary, and why they cannot all be named."""
        arguments, fault = tool.bind(args, kwargs)
        summary["arguments"] = self._within_room(tool.redacted(arguments), None)
        return arguments, fault

    async def _execute(self, call: ToolCall | Call, emit: Emit | None) -> Outcome:
        """Execute a call over the pipeline; the values of a stream go to the program one by one."""
        if isinstance(call, ToolCall) and len(self.suspended) >= _MOST_SUSPENDED:
            return Rejected(call.name, call.id, _TOO_MANY_SUSPENDED, source="limit")
        if isinstance(call, ToolCall):
            received = charged(self._pipeline.receive, call, self.run)
            call = received if is_call(received) else call  # of which the pipeline makes the outcome, and its record
        if emit is None:
            return await self._pipeline.run(call, self.run)
        entry = self._pipeline.toolset[call.name]
        most = entry.max_result_chars if entry.results is None else None
        ended: list[Outcome] = []
        stream = self._pipeline.stream(call, self.run, ended=ended.append)
        try:
            async with aclosing(stream) as values:
                async for value in values:
                    shown = render_value(value, call.name, most, structured=True, tables=GivenTables(call.name, 0))
                    await emit(shown.value)
        except (ResultNotSerializable, TableRefused) as error:
            code = ResultNotSerializable.code
            return Failed(call.name, call.id, code, str(error), type(error).__name__, exception=error)
        return ended[0]

    def _within_room(self, value: Any, brief: Any) -> Any:
        """Return a value for a summary; `brief` once all that the summaries hold is too much."""
        self._room -= memory_size(value)
        return value if self._room >= 0 else brief

    def output(self, text: str, stream: str) -> None:
        """Pass on what the program prints to the listener."""
        if self._on_output is not None:
            self._on_output(text, stream)


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, _RESULT_CHARS)
    if not isinstance(value, list | dict):
        return value
    shape: Any = cast("Any", value)
    text = json.dumps(shape, ensure_ascii=False)
    return shape if len(text) <= _RESULT_CHARS else cut(text, _RESULT_CHARS)


# --- from an outcome to the program's reply --------------------------------------------------------------------------


def reply_to(outcome: Outcome, arguments: Mapping[str, Any], spec: ToolSpec, tables: GivenTables) -> Reply:
    """Return the program's reply for an outcome: a value, or an exception of a kind that it can catch."""
    match outcome:
        case Completed(kept=KeptResult(text=text)):
            return Raised("ValueError", text)
        case Completed():
            try:
                shown = render(outcome, structured=True, tables=tables)
            except TableRefused as error:
                return Raised("ValueError", str(error))
            return Raised("TypeError", shown.text) if shown.is_error else Value(shown.value, tables.streams)
        case Rejected(source="limit"):
            return Raised("RuntimeError", outcome.reason)
        case Rejected():
            return Raised("PermissionError", outcome.reason)
        case Suspended():
            return SuspendedReply(outcome.text())
        case Failed(problems=(_, *_)):
            return Raised(_misfit(outcome, arguments, spec), outcome.message)
        case Failed(code="tool_error", exception=Exception() as error) if outcome.error_type:  # else it is masked
            return Raised(_builtin(error), _message(error, outcome.message))
        case Failed():
            return Raised(_EXCEPTIONS.get(outcome.code, "RuntimeError"), outcome.message)


def _misfit(outcome: Failed, arguments: Mapping[str, Any], spec: ToolSpec) -> str:
    """Return TypeError for arguments that are missing or unknown, as Python does, ValueError for wrong ones."""
    known = spec.input_model.model_fields.keys()
    for problem in outcome.problems:
        if not problem.field and len(outcome.problems) > 1:
            continue  # it counts the problems that are not listed
        match = _FIRST_NAME.match(problem.field)
        name = match.group() if match else ""
        if name not in arguments or not (name in known or spec.accepts(name)):
            return "TypeError"
    return "ValueError"


def _builtin(error: Exception) -> str:
    """Return the builtin exception that the tool's own is, or inherits from."""
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and kind not in (Exception, StopIteration, StopAsyncIteration):
            return kind.__name__ if issubclass(kind, Exception) else "RuntimeError"
    return "RuntimeError"


def _message(error: Exception, text: str) -> str:
    key: Any = error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else None
    return key if isinstance(key, str) and text == repr(key) else text  # the text of a KeyError is its key, quoted


class TableRefused(Exception):
    """A table cannot be given to a program, as it is too large or of a kind that Arrow lacks; the message says why."""


class GivenTables:
    """The tables in one result, each of which becomes a stream and a summary that stands for it, or rows.

    Args:
        tool: The name of the tool, for errors.
        most: The bytes that tables may have; 0 for a program that has nothing to read them with, and is given rows.
    """

    def __init__(self, tool: str, most: int) -> None:
        self._tool, self._most = tool, most
        self._streams: list[bytes] = []

    @property
    def streams(self) -> tuple[bytes, ...]:
        """The tables so far, as Arrow IPC streams."""
        return tuple(self._streams)

    def __call__(self, table: Any) -> Any:
        """Replace a table in a value by its rows or its stream.

        Raises:
            TableRefused: It is too large, or Arrow cannot hold it.
        """
        return charged(self._as_stream if self._most else self._as_rows, table)

    def _as_stream(self, table: Any) -> Any:
        size = table_bytes(table)
        if size > self._most:
            raise TableRefused(
                f"`{self._tool}` returned a table of {size} bytes, and {self._most} is the most a program can take in "
                "at once (SandboxLimits.bytes_in). Ask it for fewer rows or columns."
            )
        try:
            self._streams.append(table_stream(table))
        except MissingExtraError:
            raise
        except Exception as error:  # of the table's library: its values may be of any kind
            raise TableRefused(
                f"`{self._tool}` returned a table that Arrow cannot hold ({type(error).__name__}: {error}). The tool "
                "has to return columns of one plain kind each: numbers of 64 bits, texts, dates; "
                "`table[name].astype(str)` makes a column text."
            ) from error
        return {"$table": len(self._streams) - 1, **table_summary(table)}

    def _as_rows(self, table: Any) -> Any:
        facts = table_facts(table)
        rows, columns = count_text(facts.rows, "row"), count_text(len(facts.columns), "column")
        if facts.rows * len(facts.columns) > _MOST_CELLS:
            raise TableRefused(
                f"`{self._tool}` returned a table of {rows} and {columns}, and a program "
                f"can take in {_MOST_CELLS} values at once as rows. Ask it for fewer; or run programs in "
                'ProcessSandbox(packages=["pandas", "pyarrow"]), where tables arrive as they are.'
            )
        return table_rows(table)
