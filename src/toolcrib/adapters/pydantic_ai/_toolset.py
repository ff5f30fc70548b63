"""Toolset of Pydantic AI, made of one of Toolcrib."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Any, Never, Self, TypeAlias, cast

import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, ToolReturn
from pydantic_ai.tools import AgentDepsT, DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from toolcrib.adapters.pydantic_ai._deferred_calls import PASS_THROUGH, RawText, resumed
from toolcrib.adapters.pydantic_ai._media import content_in
from toolcrib.adapters.pydantic_ai._messages import MESSAGES, fault_of_call, shape_of_message
from toolcrib.adapters.pydantic_ai._outcomes import emit_value, reply_to
from toolcrib.calls import Completed, Failed, ResultReader, Suspended, ToolCall, new_call_id
from toolcrib.errors import explain_options
from toolcrib.hooks import GlobalHooks, ModelInput
from toolcrib.pipeline import Pipeline, Run, open_run, run_for
from toolcrib.record import Sink
from toolcrib.rounds import recall_transcript
from toolcrib.serving import run_reporting, shown_entries
from toolcrib.serving.frameworks import ConversationRuns, UsageNames, record_usage
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike

_USAGE = UsageNames(
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_reasoning_tokens",  # of newer releases
)

_log = logging.getLogger("toolcrib.adapters")
_BLIND_APPROVAL = (
    "the approval of `%s` is without the metadata of its request, or with that of another, so that it approves nothing "
    "and the call is suspended again: write DeferredToolResults(approvals=..., metadata=requests.metadata), or "
    "await answers(requests, request.grant(...))"
)
_A_TOOLSET = "as_tools returns a toolset, and not tools: Agent(toolsets=[as_tools(...)])"

OpenRun: TypeAlias = Callable[[pydantic_ai.RunContext[Any]], Run]
"""Opens the run that the calls of one agent run belong to: its limits, approver, store, principal."""


@explain_options()
def as_tools(
    tools: ToolsetLike, *, run: Run | OpenRun | None = None, sinks: Iterable[Sink] = (), id: str | None = None
) -> ToolcribToolset[Any]:
    """Return the tools as a toolset for `pydantic_ai.Agent(toolsets=[...])`; every call goes over the pipeline.

    Args:
        run: The run of the calls, or a function that opens one for each run of the agent; without it, the run of the
            tool that the agent runs in, or a new one. `deps` are those of the agent where it leaves them out.
        sinks: Where the events of calls go.
        id: Names the toolset; its own `toolset_id` when None.
    """
    return ToolcribToolset(Toolset.of(tools), run, tuple(sinks), id)


class ToolcribToolset(AbstractToolset[AgentDepsT]):
    """A toolset of Pydantic AI whose tools are ours. Made by `as_tools`.

    Attributes:
        tools: Our toolset.
        sinks: Where the events of calls go.
    """

    def __init__(
        self,
        tools: Toolset,
        run: Run | OpenRun | None,
        sinks: tuple[Sink, ...],
        id: str | None,
        runs: ConversationRuns | None = None,
    ) -> None:
        self.tools, self.sinks = tools, sinks
        self._conversations = runs or ConversationRuns(None)
        self._run, self._id = run, id
        self._pipeline = Pipeline(tools, sinks=sinks) if tools.is_open else None

    @property
    def id(self) -> str | None:
        return self._id or self.tools.toolset_id

    def __iter__(self) -> Never:
        raise TypeError(_A_TOOLSET)

    @property
    def __name__(self) -> Never:  # pyright: ignore[reportIncompatibleVariableOverride] -- Pydantic AI reads it of a tool
        raise TypeError(_A_TOOLSET)

    async def for_run(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """Return the toolset for one run of the agent, with the run's limits and counts."""
        return ToolsetRun(self, self.open_run(ctx), ctx, self._pipeline)

    def open_run(self, ctx: pydantic_ai.RunContext[Any]) -> Run:
        """Return the run of ours that the calls of one run of the agent belong to."""
        host_run = open_run(self._run, ctx)
        host_run = self._conversations.find(ctx.conversation_id or ctx.run_id, host_run, None)
        of_toolset: dict[str, Any] = {"reader": ResultReader(content_in)}
        if ctx.deps is not None and (host_run is None or host_run.deps is None):
            of_toolset["deps"] = ctx.deps
        run = run_for(host_run, "pydantic_ai", run_id=ctx.run_id or "", **of_toolset)
        if self._pipeline is not None:
            self._pipeline.check_run(run)
        return run if run.channel.conversation_id is not None else run.view(conversation_id=ctx.conversation_id)

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


class ToolsetRun(AbstractToolset[AgentDepsT]):
    """The toolset in one run of an agent."""

    def __init__(
        self,
        toolset: ToolcribToolset[AgentDepsT],
        run: Run,
        ctx: pydantic_ai.RunContext[AgentDepsT],
        pipeline: Pipeline | None,
    ) -> None:
        self._toolset, self._agent_run, self._begun_with, self._pipeline = toolset, run, ctx, pipeline
        self._stack = AsyncExitStack()
        self._recalled: list[Any] = []  # messages
        self._latest = ctx

    @property
    def id(self) -> str | None:
        return self._toolset.id

    @property
    def label(self) -> str:
        return self._toolset.label

    async def __aenter__(self) -> Self:
        """Ask members that list themselves for their tools, for as long as the run lasts."""
        if self._pipeline is None:
            opened = self._toolset.tools.open(self._in(self._begun_with).context(), hide_unavailable=False)
            self._pipeline = Pipeline(await self._stack.enter_async_context(opened), sinks=self._toolset.sinks)
            self._pipeline.check_run(self._agent_run)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._record()
        await self._stack.aclose()
        return None

    async def get_instructions(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> list[str] | None:
        if all(entry.tool.source is None for entry in self._opened.toolset):
            return None  # without a view of the toolset for each step: a tool of a function has no text
        offered = [entry.name for entry in await shown_entries(self._opened.toolset, self._in(ctx), broken=False)]
        found = await self._opened.toolset.subset(offered).get_instructions(self._in(ctx).context())
        return [instruction.content for instruction in found] or None

    async def get_tools(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        self._latest = ctx
        self._record()
        texts = await self._opened.toolset.description_overrides()
        shown = await shown_entries(self._opened.toolset, self._in(ctx))
        return {entry.name: self._shown(entry, texts.get(entry.name)) for entry in shown}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: pydantic_ai.RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> Any:
        arguments = tool_args.arguments() if isinstance(tool_args, RawText) else tool_args
        waiting = resumed(name, tool_args, ctx)
        call_id = ctx.tool_call_id or new_call_id()
        fault = fault_of_call(ctx.messages, ctx.tool_call_id)
        call, grant = waiting if waiting is not None else (ToolCall(name, arguments, call_id, fault=fault), None)
        watched = True

        async def report(value: Any) -> None:
            nonlocal watched
            watched = watched and await emit_value(ctx, value)

        run = self._in(ctx)
        if run.features:
            self._recall(ctx, run, ToolCall(name, {}, call_id))
        outcome = await run_reporting(self._opened, call, run, report, grant=grant)
        if isinstance(outcome, Suspended) and ctx.tool_call_approved and waiting is None:
            _log.warning(_BLIND_APPROVAL, name)
        if isinstance(outcome, Completed) and isinstance(outcome.value, ToolReturn):
            outcome = await self._delivered_parts(outcome, cast("ToolReturn[Any]", outcome.value), run)
        entry = self._opened.toolset.entries.get(name)
        return reply_to(outcome, tool_args, None if entry is None else entry.max_result_chars)

    # --- inside

    async def _delivered_parts(self, outcome: Completed, value: ToolReturn[Any], run: Run) -> Completed | Failed:
        """Return the outcome with what a tool returns and says beside it, after deliveries; Failed where one fails."""
        name, call_id = outcome.tool, outcome.call_id
        returned = await self._opened.completed(name, call_id, value.return_value, run)
        if isinstance(returned, Failed):
            return returned
        beside: Any = value.content
        if beside is not None and self._opened.has_deliveries(name, run):
            completed = await self._opened.completed(name, call_id, beside, run)
            if isinstance(completed, Failed):
                return completed
            beside = completed.value
        delivered = replace(value, return_value=returned.value, content=beside)
        return replace(outcome, value=delivered, kept=returned.kept)

    @property
    def _opened(self) -> Pipeline:
        if self._pipeline is None:
            raise RuntimeError("its members are not known yet: use it inside `async with`")
        return self._pipeline

    def _in(self, ctx: pydantic_ai.RunContext[AgentDepsT]) -> Run:
        """Return the run as a tool of this step sees it, with Pydantic AI's own context."""
        return self._agent_run.view(provide={**self._agent_run.provide, pydantic_ai.RunContext: ctx})

    def _record(self) -> None:
        """Record the usage of the requests that the run's messages answer, and not those of an earlier run."""
        run_id, messages = self._latest.run_id, self._latest.messages
        requests = [
            _USAGE.request(
                f"{message.provider_response_id or ''} {message.timestamp.isoformat()}",
                message.usage,
                message.model_name,
            )
            for message in messages
            if isinstance(message, ModelResponse) and run_id and message.run_id == run_id
        ]
        record_usage(self._agent_run, requests, self._toolset.sinks)

    def _recall(self, ctx: pydantic_ai.RunContext[AgentDepsT], run: Run, call: ToolCall) -> None:
        """Read the messages since the last call into the run: also results of other toolsets' tools."""
        run.read_input(ModelInput("call", request=call))
        size = len(self._recalled)
        if self._recalled and (len(ctx.messages) < size or ctx.messages[size - 1] is not self._recalled[-1]):
            size = 0  # a history processor has put others in their place
        shapes = [shape_of_message(message) for message in ctx.messages[size:]]
        recall_transcript(run, self._opened.toolset, shapes, MESSAGES)
        self._recalled = [*ctx.messages]

    def _shown(self, entry: ToolEntry, text: str | None) -> ToolsetTool[AgentDepsT]:
        definition = ToolDefinition(
            name=entry.name,
            description=entry.description if text is None else text,
            parameters_json_schema=entry.parameters,
            return_schema=entry.return_schema,
        )
        most = entry.max_retries  # where our count ends the retries, before theirs would end the run
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=most, args_validator=PASS_THROUGH)


def create_agent(
    model: Any,
    *,
    tools: Iterable[Any] = (),
    pre_hooks: Mapping[str, Any] | None = None,
    post_hooks: Mapping[str, Any] | None = None,
    global_hooks: GlobalHooks | None = None,
    run: Run | OpenRun | None = None,
    **options: Any,
) -> Agent[Any, Any]:
    """Return a Pydantic AI agent with these tools; its run ends with `DeferredToolRequests` when a person is asked.

    Args:
        model: The model, as `pydantic_ai.Agent` takes one.
        tools: The tools, as `Toolset` takes them.
        run: The run of the calls, or what opens it; see `as_tools`.
        options: Everything else that `pydantic_ai.Agent` takes.
    """
    toolset = Toolset(tools, pre_hooks=pre_hooks, post_hooks=post_hooks, global_hooks=global_hooks)
    toolsets = [as_tools(toolset, run=run), *(options.pop("toolsets", None) or ())]
    output = options.pop("output_type", str)
    outputs: list[Any] = [*output] if isinstance(output, list | tuple) else [output]
    if DeferredToolRequests not in outputs:
        outputs.append(DeferredToolRequests)
    return Agent(model, toolsets=toolsets, output_type=outputs, **options)


def stream_agent(
    agent: Agent[Any, Any], prompt: Any = None, **options: Any
) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
    """Return a run of an agent, to be entered, that gives its events as they come.

    Args:
        agent: The agent of `create_agent`.
        prompt: The text of the user; None for a run that continues from deferred results.
        options: The options of `Agent.run_stream_events`: `deps`, `message_history`, `deferred_tool_results`.
    """
    return agent.run_stream_events(prompt, **options)
