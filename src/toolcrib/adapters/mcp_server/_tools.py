"""Tools served one by one: what is listed, and a call from its request to its result."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from toolcrib.adapters.mcp_server._listing import Listed
from toolcrib.adapters.mcp_server._principals import Principal
from toolcrib.adapters.mcp_server._replies import clean, reply_to
from toolcrib.calls import Outcome, Suspended, ToolCall, Yielded, lenient
from toolcrib.errors import SchemaError
from toolcrib.invoke import Pipeline, RunScope
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, is_available

__all__ = ["ServedTools"]

_log = logging.getLogger("toolcrib.adapters")
_WIDE = 1_000  # characters of a value in a progress notification


class ServedTools:
    """The tools of one open toolset, for all principals."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._listed = {entry.name: Listed(entry) for entry in pipeline.toolset}

    # --- tools/list

    async def list(self, principal: Principal) -> list[types.Tool]:
        """Return the tools that a principal is shown now, those they found last."""
        texts = await self.pipeline.toolset.description_overrides()
        shown = [self._shown(entry, texts.get(entry.name)) for entry in await self._offered(principal.scope)]
        return [tool for tool in shown if tool is not None]

    async def instructions(self, principal: Principal) -> list[str]:
        """Return what the tools that a principal is shown have to say."""
        names = [entry.name for entry in await self._offered(principal.scope)]
        try:
            found = await self.pipeline.toolset.subset(names).get_instructions(_about(principal.scope))
        except Exception:  # the tools' own code; a server without instructions serves all the same
            _log.exception("the instructions of the tools cannot be told")
            return []
        return [instruction.content for instruction in found]

    async def _offered(self, scope: RunScope) -> list[ToolEntry]:
        entries = self.pipeline.toolset.entries
        allowed = self.pipeline.toolset.offered() if scope.available is None else scope.available
        names = [name for name in entries if name in allowed]
        found = [name for name in scope.revealed if name in entries and name not in names]
        about = _about(scope)
        return [entries[name] for name in (*names, *found) if await _is_shown(entries[name], about)]

    def _shown(self, entry: ToolEntry, text: str | None) -> types.Tool | None:
        try:
            return self._listed[entry.name].tool(text)
        except SchemaError:
            _log.exception("%s is not listed: its input cannot be described", entry.name)
            return None

    # --- tools/call

    async def call(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams, principal: Principal
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Make a call, and return what the client is answered."""
        call = ToolCall(params.name, params.arguments or {})
        return self._reply(await self.run(ctx, call, principal.scope))

    async def run(self, ctx: ServerRequestContext[Any, Any], call: ToolCall | Suspended, scope: RunScope) -> Outcome:
        """Take a call over the counter; the values of a streaming tool are reported as progress."""
        name = call.tool if isinstance(call, Suspended) else call.name
        entry = self.pipeline.toolset.entries.get(name)
        if entry is None or not entry.tool.is_streaming:
            return await self.pipeline.run(call, scope)
        count = 0
        async with aclosing(self.pipeline.stream(call, scope)) as items:
            async for item in items:
                if not isinstance(item, Yielded):
                    return item
                count += 1
                await ctx.session.report_progress(count, message=_line(item.value))
        raise RuntimeError("the pipeline gave no outcome")

    def _reply(self, outcome: Outcome) -> types.CallToolResult:
        return reply_to(outcome, self._listed.get(outcome.tool))


def _about(scope: RunScope) -> RunContext[Any]:
    return RunContext(scope.deps, "", "", scope.id, provided=scope.provide, revealed=scope.revealed)


async def _is_shown(entry: ToolEntry, ctx: RunContext[Any]) -> bool:
    try:
        return await is_available(entry, ctx) or not entry.skip_unavailable
    except Exception:  # the condition is the user's code
        _log.exception("whether %s is available cannot be told; a call of it will be refused", entry.name)
        return True


def _line(value: Any) -> str:
    shape = lenient(value)
    text = shape if isinstance(shape, str) else str(shape)
    return clean(text if len(text) <= _WIDE else text[: _WIDE - 1] + "…")
