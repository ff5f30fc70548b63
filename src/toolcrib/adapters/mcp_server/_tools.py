"""Tools of a toolset, served one by one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

from toolcrib.adapters.mcp_server._client_link import LogLevels, required_capabilities
from toolcrib.adapters.mcp_server._elicitation import Suspension, is_stateless
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._replies import ListedTool, clean, original_error, original_reply, reply_to
from toolcrib.adapters.mcp_server._tool_server import CallReply, ToolRequest, ToolServer
from toolcrib.approvals import AgentContext
from toolcrib.calls import Completed, Denial, Failed, Grant, Outcome, Suspended, ToolCall, lenient, outcome_from_dict
from toolcrib.errors import ClientUnavailable, RemoteToolError, SchemaError, exception_of, raising_newer_forms
from toolcrib.pipeline import Pipeline, Run
from toolcrib.serving import OpenCalls, OriginalResults, Principal, run_reporting, shown_entries
from toolcrib.toolsets import ToolEntry, Toolset

_log = logging.getLogger("toolcrib.adapters")
_REPORT = ("progress", "total", "message")  # of the progress that a tool of an MCP server yields
_REFRESH_SECONDS = 1.0  # between two reads of what other servers keep, which cost a call a millisecond
_MAX_PROGRESS_CHARS = 1_000  # characters of a value in a progress notification


class DirectToolServer(ToolServer):
    """The tools of one open toolset, as a client sees them.

    Args:
        asking: Tools that have suspended calls already.
    """

    def __init__(
        self,
        pipeline_now: Callable[[], Pipeline],
        options: ServerOptions,
        calls: OpenCalls,
        levels: LogLevels,
        asking: frozenset[str],
    ) -> None:
        super().__init__(options, calls, levels)
        self._pipeline_now, self._suspending = pipeline_now, {*asking}
        self.renewed()
        self._refreshed = time.monotonic()

    def renewed(self) -> None:
        self.pipeline = self._pipeline_now()
        self._listed = {
            stateless: {entry.name: ListedTool(entry, stateless=stateless) for entry in self.pipeline.toolset}
            for stateless in (False, True)
        }
        self._suspending |= {entry.name for entry in self.pipeline.toolset if entry.may_ask}

    @property
    def toolset(self) -> Toolset:
        return self.pipeline.toolset

    @property
    def entries(self) -> Mapping[str, ToolEntry]:
        return self.pipeline.toolset.entries

    # --- tools/list

    async def list(self, principal: Principal, *, stateless: bool) -> Sequence[types.Tool]:
        """Return the tools that a principal is shown now; the ones it found come last."""
        texts = await self.pipeline.toolset.description_overrides()
        shown = [
            _listed_tool(self._listed[stateless][entry.name], texts.get(entry.name))
            for entry in await shown_entries(self.pipeline.toolset, principal.run)
        ]
        return [tool for tool in shown if tool is not None]

    async def instructions(self, principal: Principal) -> Sequence[str]:
        names = [entry.name for entry in await shown_entries(self.pipeline.toolset, principal.run)]
        try:
            found = await self.pipeline.toolset.subset(names).get_instructions(principal.run.context())
        except BaseException as error:  # the tools' own code; a server without instructions serves all the same
            _log.error("the instructions of the tools cannot be read", exc_info=exception_of(error))
            return []
        return [clean(instruction.content) for instruction in found]

    # --- tools/call

    async def refresh(self) -> None:
        """Learn which tools asked for approval on another server; a person takes longer to answer than this is late."""
        if time.monotonic() - self._refreshed >= _REFRESH_SECONDS:
            self._refreshed = time.monotonic()
            self._suspending |= await self._suspended.tools()

    def may_be_suspended(self, request: ToolRequest) -> bool:
        run = request.run
        return request.params.name in self._suspending or bool(run.gates) or isinstance(run.deps, AgentContext)

    def asks(self, name: str) -> bool:
        """Return whether a tool sees its context, or is another server's, which may ask."""
        entry = self.pipeline.toolset.entries.get(name)
        return entry is not None and (entry.tool.source is not None or self.pipeline.wants_context(name))

    async def start(self, request: ToolRequest) -> CallReply | Suspension:
        arguments = (request.params.arguments or {}) if request.text is None else request.text
        return await self._run(request, ToolCall(request.params.name, arguments))

    async def resume(
        self, request: ToolRequest, state: Mapping[str, Any], answers: Sequence[Grant | Denial]
    ) -> CallReply | Suspension:
        suspended = outcome_from_dict(state)
        if not isinstance(suspended, Suspended):
            raise TypeError("the state is not that of a suspended call")
        with raising_newer_forms():
            return await self._run(request, suspended, next(iter(answers), None))

    async def _run(
        self, request: ToolRequest, call: ToolCall | Suspended, answer: Grant | Denial | None = None
    ) -> CallReply | Suspension:
        """Run a call, and return what the client gets; the result of another server goes to it unchanged."""
        listed, run = self._listed[is_stateless(request.ctx)].get(request.params.name), request.run
        sees_all = not run.features and not self.pipeline.has_deliveries(request.params.name, run)
        if listed is None or listed.entry.tool.source is None or not sees_all:
            return self._result(request, await self._outcome(request, call, run, answer))
        originals = OriginalResults()
        run = run.view(provide={**run.provide, OriginalResults: originals})
        outcome = await self._outcome(request, call, run, answer)
        refusal = original_error(outcome, listed.entry)
        if refusal is not None and (request.link is None or not request.link.lacked):
            raise refusal
        value = outcome.value if isinstance(outcome, Completed) else None
        return self._result(request, outcome, originals.of(outcome.call_id, value))

    async def _outcome(
        self, request: ToolRequest, call: ToolCall | Suspended, run: Run, answer: Grant | Denial | None
    ) -> Outcome:
        """Run a call through the pipeline; what its tool yields or reports is progress."""
        if request.flight is not None:
            run = run.with_sinks(request.flight)
        return await run_reporting(
            self.pipeline, call, run, lambda value: request.progress(*_progress(value)), grant=answer
        )

    def _result(self, request: ToolRequest, outcome: Outcome, original: Any = None) -> CallReply | Suspension:
        if isinstance(outcome, Suspended):
            self._suspending.add(outcome.tool)  # also a tool that raised ApprovalRequired
            executed = outcome.executed_since is not None
            return Suspension((outcome.request,), outcome.to_dict(), outcome.text(), executed)
        if isinstance(outcome, Completed):
            request.run.retries.pop(outcome.tool, None)  # a principal's run may last for months
        link, error = request.link, outcome.exception if isinstance(outcome, Failed) else None
        is_for_lack = isinstance(error, ClientUnavailable | RemoteToolError)  # of a tool here, or of another server
        if link is not None and link.lacked and is_for_lack and is_stateless(request.ctx):
            needed = {"requiredCapabilities": required_capabilities(link.lacked)}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, clean(str(error)), needed)
        if request.answer is not None:
            return request.answer(outcome, original)
        stateless = is_stateless(request.ctx)
        listed = self._listed[stateless].get(outcome.tool)
        passed_on = None
        if original is not None and listed is not None:
            passed_on = original_reply(outcome, listed, original, stateless=stateless)
        return reply_to(outcome, listed) if passed_on is None else passed_on


def _listed_tool(listed: ListedTool, text: str | None) -> types.Tool | None:
    try:
        return listed.tool(text)
    except SchemaError:
        _log.exception("%s is not listed: its input cannot be described", listed.entry.name)
        return None


def _progress(value: Any) -> tuple[str | None, float | None, float | None]:
    """Return the progress that a yielded value reports: message, done and total; else the value as the message."""
    shape = lenient(value)
    match shape:
        case {"progress": int() | float() as done, "total": int() | float() | None as total, "message": message} if len(
            shape
        ) == len(_REPORT) and (message is None or isinstance(message, str)):
            return (None if message is None else _cut(message)), done, total
        case _:
            return _cut(shape if isinstance(shape, str) else json.dumps(shape, ensure_ascii=False)), None, None


def _cut(text: str) -> str:
    return clean(text if len(text) <= _MAX_PROGRESS_CHARS else text[: _MAX_PROGRESS_CHARS - 1] + "…")
