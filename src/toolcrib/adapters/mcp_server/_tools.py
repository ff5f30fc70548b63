"""Tools served one by one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import mcp_types as types

from toolcrib.adapters.mcp_server._elicitation import Halted
from toolcrib.adapters.mcp_server._listing import Listed
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._replies import clean, reply_to
from toolcrib.adapters.mcp_server._tool_server import Served, Visit
from toolcrib.approvals import AgentContext, SuspendedCallStore
from toolcrib.calls import Completed, Denial, Grant, Outcome, Suspended, ToolCall, Yielded, lenient, outcome_from_dict
from toolcrib.errors import SchemaError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.serving._principals import Principal
from toolcrib.serving._single_flight import Starting
from toolcrib.toolsets import ToolEntry, is_available

__all__ = ["ServedTools"]

_log = logging.getLogger("toolcrib.adapters")
_REPORT = ("progress", "total", "message")  # what a tool of an MCP server reports
_LOOK = 1.0  # seconds between two looks at what other servers keep, which cost a call a millisecond
_WIDE = 1_000  # characters of a value in a progress notification


class ServedTools(Served):
    """The tools of one open toolset, as a client sees them.

    Args:
        asked: Tools of which calls wait already.
    """

    def __init__(
        self, pipeline: Pipeline, options: ServerOptions, waiting: SuspendedCallStore, asked: frozenset[str]
    ) -> None:
        super().__init__(options, waiting)
        self.pipeline = pipeline
        self._listed = {entry.name: Listed(entry) for entry in pipeline.toolset}
        self._asking = {entry.name for entry in pipeline.toolset if entry.approvals or entry.hook_sets} | asked
        self._looked = time.monotonic()

    # --- tools/list

    async def list(self, principal: Principal) -> Sequence[types.Tool]:
        """Return the tools that a principal is shown now, those they found last."""
        texts = await self.pipeline.toolset.description_overrides()
        shown = [self._shown(entry, texts.get(entry.name)) for entry in await self._offered(principal.run)]
        return [tool for tool in shown if tool is not None]

    async def instructions(self, principal: Principal) -> Sequence[str]:
        """Return what the tools that a principal is shown have to say."""
        names = [entry.name for entry in await self._offered(principal.run)]
        try:
            found = await self.pipeline.toolset.subset(names).get_instructions(_about(principal.run))
        except Exception:  # the tools' own code; a server without instructions serves all the same
            _log.exception("the instructions of the tools cannot be told")
            return []
        return [clean(instruction.content) for instruction in found]

    async def _offered(self, run: Run) -> Sequence[ToolEntry]:
        entries = self.pipeline.toolset.entries
        allowed = self.pipeline.toolset.offered() if run.available is None else run.available
        names = [name for name in entries if name in allowed]
        found = [name for name in run.revealed if name in entries and name not in names]
        about = _about(run)
        return [entries[name] for name in (*names, *found) if await _is_shown(entries[name], about)]

    def _shown(self, entry: ToolEntry, text: str | None) -> types.Tool | None:
        try:
            return self._listed[entry.name].tool(text)
        except SchemaError:
            _log.exception("%s is not listed: its input cannot be described", entry.name)
            return None

    # --- tools/call

    async def look_again(self) -> None:
        """Learn which tools have asked when they ran on another server; people take longer than it takes to notice."""
        if time.monotonic() - self._looked >= _LOOK:
            self._looked = time.monotonic()
            self._asking |= await self._waiting.tools()

    def may_wait(self, visit: Visit) -> bool:
        """Return whether something about the tool may ask for approval, or has done so."""
        return visit.params.name in self._asking or isinstance(visit.run.deps, AgentContext)

    async def begin(self, visit: Visit) -> types.CallToolResult | Halted:
        """Make a new call."""
        return self._said(visit, await self._run(visit, ToolCall(visit.params.name, visit.params.arguments or {})))

    async def go_on(
        self, visit: Visit, state: Mapping[str, Any], answers: Sequence[Grant | Denial]
    ) -> types.CallToolResult | Halted:
        """Take up a call that waited."""
        suspended = outcome_from_dict(state)
        if not isinstance(suspended, Suspended):
            raise TypeError("the state of a call that waits is a suspended call")
        return self._said(visit, await self._run(visit, suspended, next(iter(answers), None)))

    async def _run(self, visit: Visit, call: ToolCall | Suspended, answer: Grant | Denial | None = None) -> Outcome:
        """Take a call over the counter; what a tool yields or reports meanwhile is told as progress."""
        entry, run = self.pipeline.toolset.entries.get(visit.params.name), visit.run
        if visit.leave is not None:
            run = replace(run, sinks=(*run.sinks, Starting(visit.leave)))
        if entry is None or not entry.tool.is_watched:
            return await self.pipeline.run(call, run, grant=answer)
        async with aclosing(self.pipeline.stream(call, run, grant=answer)) as items:
            async for item in items:
                if not isinstance(item, Yielded):
                    return item
                await visit.progress(*_progress(item.value))
        raise RuntimeError("the pipeline gave no outcome")

    def _said(self, visit: Visit, outcome: Outcome) -> types.CallToolResult | Halted:
        if isinstance(outcome, Suspended):
            self._asking.add(outcome.tool)  # also a tool that only asked when it ran
            return Halted((outcome.request,), outcome.to_dict(), outcome.text())
        if isinstance(outcome, Completed):
            visit.run.retries.pop(outcome.tool, None)  # a principal's run may last for months
        return reply_to(outcome, self._listed.get(outcome.tool))


def _about(run: Run) -> RunContext[Any]:
    return RunContext(run.deps, "", "", run.id, provided=run.provide, revealed=run.revealed)


async def _is_shown(entry: ToolEntry, ctx: RunContext[Any]) -> bool:
    try:
        return await is_available(entry, ctx) or not entry.skip_unavailable
    except Exception:  # the condition is the user's code
        _log.exception("whether %s is available cannot be told; a call of it will be refused", entry.name)
        return True


def _progress(value: Any) -> tuple[str | None, float | None, float | None]:
    """Return what a client is told of a value: its text; of one that says how far a call has come, that."""
    shape = lenient(value)
    match shape:
        case {"progress": int() | float() as done, "total": int() | float() | None as total, "message": said} if len(
            shape
        ) == len(_REPORT) and (said is None or isinstance(said, str)):
            return (None if said is None else _cut(said)), done, total
        case _:
            return _line(shape), None, None


def _line(shape: Any) -> str:
    text = shape if isinstance(shape, str) else json.dumps(shape, ensure_ascii=False)
    return _cut(text)


def _cut(text: str) -> str:
    return clean(text if len(text) <= _WIDE else text[: _WIDE - 1] + "…")
