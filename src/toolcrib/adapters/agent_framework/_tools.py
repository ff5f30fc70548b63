"""Tools of a toolset in agents of the framework, by a context provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    ChatContext,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    SessionContext,
)

from toolcrib.adapters.agent_framework._answers import asked_in, response_content
from toolcrib.adapters.agent_framework._calls import (
    ENTRY,
    CallOfAgent,
    CallsThroughGates,
    Gates,
    MessagesToModel,
    Next,
    contents_of,
)
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Denial
from toolcrib.errors import ToolcribError, explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, Given, answered
from toolcrib.toolsets import Toolset, ToolsetLike


@explain_options()
def as_tools(
    tools: ToolsetLike,
    *,
    run: Run | Callable[[AgentSession], Run] | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
    source_id: str = "toolcrib",
) -> ToolProvider:
    """Return the tools for `Agent(client, context_providers=[...])`; every call goes over the pipeline.

    A call that needs approval is one of the response's `user_input_requests`: `approval_requests` says what a person
    is asked, and `answers` makes the message that the agent goes on with, in the same session.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        run: The run of the calls, or a function that opens one for each run of an agent, given its `AgentSession`;
            without it, the run of the tool that the agent runs in, or a new one. The session is the conversation.
            `deps` are the agent's `function_invocation_kwargs` where the run has none.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
        source_id: The provider's name in the agent.
    """
    toolset = Toolset.of(tools)
    return ToolProvider(toolset, FrameworkTools(toolset, FrameworkRuns(ENTRY, run, suspended), sinks), source_id)


async def answers(asked: Iterable[Content], *given: Given, agent: Agent[Any], session: AgentSession) -> Message:
    """Return the message with which the agent goes on: `await agent.run(message, session=session)`.

    The model is shown the message of a denial. It is in the record, too, unless the framework itself asked.

    Args:
        asked: The requests of the agent: `response.user_input_requests`.
        given: The answers of a person; or a request itself, whose answer the approval store has.
        agent: The agent, or one with the same tools and gates in another process.
        session: The session that it ran in.

    Raises:
        ApprovalError: An answer is for nothing that is asked, or a request was answered before.
    """
    gates = [provider.gates for provider in agent.context_providers if isinstance(provider, GatedProvider)]
    contents: list[Content] = []
    for (content, request), answer in answered(((gate, gate[1]) for gate in asked_in(asked)), given):
        if isinstance(answer, Denial):
            for gate in gates:
                if await gate.deny(content, request, answer, session):
                    break
        contents.append(response_content(content, answer))
    return Message(role="user", contents=contents)


class GatedProvider(ContextProvider):
    """A context provider whose gates the calls of an agent pass."""

    def __init__(self, source_id: str, gates: Gates) -> None:
        super().__init__(source_id)
        self.gates = gates

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Put the gates around the calls of one run of the agent."""
        gates, run = self.gates, self.gates.run_of(session)
        context.extend_middleware(self.source_id, [CallsThroughGates(gates, run)])
        if gates.reads_requests(run, session):
            context.extend_middleware(self.source_id, [MessagesToModel(gates, run)])


class ToolProvider(GatedProvider):
    """A context provider that brings our tools. Made by `as_tools`.

    Attributes:
        toolset: The tools.
    """

    def __init__(self, toolset: Toolset, tools: FrameworkTools, source_id: str) -> None:
        gates = _ToolGates(tools)
        super().__init__(source_id, gates)
        self._listed = [*gates.listed.values()]
        self.toolset = toolset

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the tools to the agent for one run."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        context.extend_tools(self.source_id, self._listed)


class _ToolGates(Gates):
    """The gates of our own tools."""

    def __init__(self, tools: FrameworkTools) -> None:
        super().__init__(tools.runs, tools.pipeline.sinks)
        self._tools = tools
        self.listed = {name: _Tool(tools, name) for name in tools.entries}

    async def call(self, context: FunctionInvocationContext, run: Run, call_next: Next) -> None:
        if context.function is not self.listed.get(context.function.name):
            await call_next()
            return
        outcome = await CallOfAgent(context, run).make(self._tools)
        if outcome is not None:
            context.result = contents_of(outcome)

    def reads_requests(self, run: Run, session: AgentSession) -> bool:
        return super().reads_requests(run, session) or self._tools.may_hide(run)

    async def before_model(self, context: ChatContext, run: Run) -> None:
        await super().before_model(context, run)
        tools: Sequence[Any] = (context.options or {}).get("tools") or ()
        shown = [
            tool
            for tool in tools
            if tool is not self.listed.get(getattr(tool, "name", "")) or await self._tools.shows(tool.name, run)
        ]
        if len(shown) < len(tools):
            context.options = {**(context.options or {}), "tools": shown}

    def known(self, context: ChatContext) -> Toolset:
        return self._tools.pipeline.toolset

    def tools_of(self, name: str) -> FrameworkTools | None:
        return self._tools if name in self._tools.entries else None


class _Tool(FunctionTool):
    """One tool as the framework lists it."""

    def __init__(self, tools: FrameworkTools, name: str) -> None:
        entry = tools.entries[name]
        super().__init__(name=name, description=entry.description, func=self._unreached, input_model=entry.parameters)

    async def _unreached(self, **arguments: Any) -> Any:
        raise ToolcribError(f"`{self.name}` is called past its gates: give its agent what `as_tools` returned")
