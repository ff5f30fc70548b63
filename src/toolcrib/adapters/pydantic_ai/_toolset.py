"""A Toolcrib toolset as one of Pydantic AI's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from typing import Any, Self, TypeAlias

import pydantic_ai
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from toolcrib.adapters.pydantic_ai._arguments import PASS_THROUGH, RawText
from toolcrib.adapters.pydantic_ai._deferred_calls import resumed
from toolcrib.adapters.pydantic_ai._outcomes import reply_to, tell
from toolcrib.calls import Grant, Outcome, Suspended, ToolCall, Yielded, new_call_id
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.record import Sink
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike, is_available

__all__ = ["CribToolset", "OpenRun", "as_toolset"]

OpenRun: TypeAlias = Callable[[pydantic_ai.RunContext[Any]], Run]
"""Opens the run that the calls of one agent run belong to: its limits, approver, store, principal."""

_log = logging.getLogger("toolcrib.adapters")


def as_toolset(
    tools: ToolsetLike, *, run: OpenRun | None = None, sinks: Iterable[Sink] = (), id: str | None = None
) -> CribToolset[Any]:
    """Return the tools as a toolset for `pydantic_ai.Agent(toolsets=[...])`; every call goes over the pipeline.

    Args:
        run: Opens the run, once for each run of the agent. `deps` are those of the agent where it leaves them out.
        sinks: Where the events of calls go.
        id: Names the toolset; its own `toolset_id` when None.
    """
    return CribToolset(Toolset.of(tools), run or _plain_scope, tuple(sinks), id)


def _plain_scope(ctx: pydantic_ai.RunContext[Any]) -> Run:
    return Run() if ctx.run_id is None else Run(id=ctx.run_id)


class CribToolset(AbstractToolset[AgentDepsT]):
    """A toolset of Pydantic AI whose tools are ours. Made by `as_toolset`.

    Attributes:
        tools: Our toolset.
        sinks: Where the events of calls go.
    """

    def __init__(self, tools: Toolset, run: OpenRun, sinks: tuple[Sink, ...], id: str | None) -> None:
        self.tools, self.sinks = tools, sinks
        self._open_scope, self._id = run, id
        self._pipeline = Pipeline(tools, sinks=sinks) if tools.is_open else None

    @property
    def id(self) -> str | None:
        return self._id or self.tools.toolset_id

    async def for_run(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return the toolset for one run of the agent, with the run's limits and counts."""
        run = self._open_scope(ctx)
        deps = ctx.deps if run.deps is None else run.deps
        run = run_for(run, "pydantic_ai", deps=deps)
        return _CribRun(self, run, ctx, self._pipeline)

    async def get_tools(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools of a run of their own; a run of an agent asks what `for_run` returned."""
        return await (await self.for_run(ctx)).get_tools(ctx)

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: pydantic_ai.RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        """Refuse: outside a run there is nothing that limits and retries could be counted in."""
        raise RuntimeError("call the toolset that `await toolset.for_run(ctx)` returns, inside `async with`")


class _CribRun(AbstractToolset[AgentDepsT]):
    """The toolset in one run of an agent."""

    def __init__(
        self,
        toolset: CribToolset[AgentDepsT],
        run: Run,
        ctx: pydantic_ai.RunContext[AgentDepsT],
        pipeline: Pipeline | None,
    ) -> None:
        self._toolset, self._scope, self._begun_with, self._pipeline = toolset, run, ctx, pipeline
        self._stack = AsyncExitStack()

    @property
    def id(self) -> str | None:
        return self._toolset.id

    @property
    def label(self) -> str:
        return self._toolset.label

    async def __aenter__(self) -> Self:
        """Ask members that list themselves for their tools, for as long as the run lasts."""
        if self._pipeline is None:
            opened = self._toolset.tools.open(self._about(self._begun_with), hide_unavailable=False)
            self._pipeline = Pipeline(await self._stack.enter_async_context(opened), sinks=self._toolset.sinks)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        await self._stack.aclose()
        return None

    async def get_instructions(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> list[str] | None:
        offered = [entry.name for entry in await self._offered(ctx, broken=False)]
        found = await self._opened.toolset.subset(offered).get_instructions(self._about(ctx))
        return [instruction.content for instruction in found] or None

    async def get_tools(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        texts = await self._opened.toolset.description_overrides()
        return {entry.name: self._shown(entry, texts.get(entry.name)) for entry in await self._offered(ctx)}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: pydantic_ai.RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        given = tool_args.given() if isinstance(tool_args, RawText) else tool_args
        waiting = resumed(name, tool_args, ctx)
        call_id = ctx.tool_call_id or new_call_id()
        call, grant = waiting if waiting is not None else (ToolCall(name, given, call_id), None)
        run = self._scope.view(provide={**self._scope.provide, pydantic_ai.RunContext: ctx})
        return reply_to(await self._run(call, run, grant, ctx), tool_args)

    async def _run(
        self, call: ToolCall | Suspended, run: Run, grant: Grant | None, ctx: pydantic_ai.RunContext[AgentDepsT]
    ) -> Outcome:
        watched = True
        async with aclosing(self._opened.stream(call, run, grant=grant)) as items:
            async for item in items:
                if not isinstance(item, Yielded):
                    return item
                watched = watched and await tell(ctx, item.value)
        raise RuntimeError("the pipeline gave no outcome")

    # --- inside

    @property
    def _opened(self) -> Pipeline:
        if self._pipeline is None:
            raise RuntimeError("its members are not known yet: use it inside `async with`")
        return self._pipeline

    def _about(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> RunContext[Any]:
        run = self._scope
        provided: dict[Any, Any] = {**run.provide, pydantic_ai.RunContext: ctx}
        return RunContext(run.deps, "", "", run.id, provided=provided, revealed=run.revealed)

    async def _offered(self, ctx: pydantic_ai.RunContext[AgentDepsT], *, broken: bool = True) -> list[ToolEntry]:
        """Return what the model is shown at this step; whether it may be called is asked again by the pipeline.

        Args:
            broken: With the tools of which it cannot be told: a call is refused with the error, and that is recorded.
        """
        run, about = self._scope, self._about(ctx)
        found: list[ToolEntry] = []
        for entry in self._opened.toolset:
            allowed = not entry.off if run.available is None else entry.name in run.available
            if (allowed or entry.name in run.revealed) and await _is_shown(entry, about, broken):
                found.append(entry)
        return found

    def _shown(self, entry: ToolEntry, text: str | None) -> ToolsetTool[AgentDepsT]:
        definition = ToolDefinition(
            name=entry.name,
            description=entry.description if text is None else text,
            parameters_json_schema=entry.parameters,
            return_schema=entry.return_schema,
        )
        most = entry.max_retries  # where our count ends the retries, before theirs would end the run
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=most, args_validator=PASS_THROUGH)


async def _is_shown(entry: ToolEntry, ctx: RunContext[Any], broken: bool) -> bool:
    try:
        return await is_available(entry, ctx) or not entry.skip_unavailable
    except Exception:  # the condition is the user's code
        _log.exception("whether %s is available cannot be told; a call of it will be refused", entry.name)
        return broken
