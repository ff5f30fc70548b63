"""Function tools of the OpenAI Agents SDK, made of a toolset."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from agents import (
    FunctionTool,
    RunContextWrapper,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    get_current_trace,
)
from agents.items import ToolApprovalItem
from agents.tool_context import ToolContext

from toolcrib._json_writer import read_json
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import ApprovalRequest, Completed, Grant, Media, ToolCall, render
from toolcrib.errors import explain_options
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.rounds import recall_transcript
from toolcrib.serving.frameworks import (
    FrameworkRuns,
    FrameworkTools,
    MediaForms,
    OpenFrameworkRun,
    is_as_seen,
    plain_grant,
)
from toolcrib.toolsets import ToolsetLike

ENTRY = "openai_agents"


@explain_options()
def as_tools(
    tools: ToolsetLike,
    *,
    run: Run | OpenFrameworkRun | None = None,
    sinks: Iterable[Sink] = (),
    suspended: SuspendedCallStore | None = None,
) -> list[FunctionTool]:
    """Return the tools for `agents.Agent(tools=[...])`; every call goes over the pipeline.

    A call that needs approval is one of the interruptions of the agent's result: `approval_requests` says what a person
    is asked, and `answer` gives their answer to the `RunState`.

    Args:
        tools: The tools; members that list themselves have to be known: `async with toolset.open() as opened`.
        run: The run of the calls, or a function that opens one for each run of an agent, given its
            `RunContextWrapper`; without it, the run of the tool that the agent runs in, or a new one, named like the
            trace. `deps` are the agent's context where the run has none.
        sinks: Where the events of calls go.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.
    """
    bridge = FrameworkTools(tools, FrameworkRuns(ENTRY, run, suspended), sinks)
    return [
        FunctionTool(
            name=entry.name,
            description=entry.description,
            params_json_schema=entry.parameters,
            on_invoke_tool=invocation.invoke,
            strict_json_schema=False,  # a schema with defaults is not strict
            is_enabled=invocation.is_enabled,
            needs_approval=invocation.needs_approval if bridge.may_ask(entry.name) else False,
        )
        for entry in bridge.entries.values()
        for invocation in [Invocation(bridge, entry.name)]
    ]


class Invocation:
    """One tool as the SDK calls it."""

    def __init__(self, tools: FrameworkTools, name: str) -> None:
        self.tools, self.name = tools, name

    @classmethod
    def of(cls, tool: object) -> Invocation | None:
        """Return the invocation of a tool of the SDK, where it has gates of ours."""
        owner = getattr(tool.on_invoke_tool, "__self__", None) if isinstance(tool, FunctionTool) else None
        return owner if isinstance(owner, cls) else None

    async def is_enabled(self, ctx: RunContextWrapper[Any], agent: object) -> bool:
        """Return whether the model is shown the tool now."""
        await self.read_decisions(ctx)
        return await self.tools.shows(self.name, self.run_of(ctx))

    async def read_decisions(self, ctx: RunContextWrapper[Any]) -> None:
        """Read the decisions in a resumed state: the SDK asks first whether the tool is enabled.

        The yes by which a call in doubt began is taken from the state, so that it stops at the call again. A no is
        recorded, as the SDK tells no tool of it.
        """
        decisions = [*ctx._approvals.values()]  # pyright: ignore[reportPrivateUsage] -- there is no other way to them
        approved = [
            decision.approved for decision in decisions if isinstance(decision.approved, list) and decision.approved
        ]
        denied = {
            id: decision.rejection_messages.get(id, "")
            for decision in decisions
            for id in (decision.rejected if isinstance(decision.rejected, list) else ())
        }
        for call_id in await self.tools.calls_in_doubt(self.run_of(ctx)) if approved else ():
            for ids in approved:
                ids[:] = [id for id in ids if id != call_id]
        if denied:
            await self.tools.deny_calls(self.name, denied, self.run_of(ctx))

    async def needs_approval(self, ctx: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Pass a call through the gates, and return whether a person has to answer before it goes on."""
        call = ToolCall(self.name, json.dumps(arguments), call_id)
        return await self.tools.admit(call, self.run_of(ctx)) is not None

    async def invoke(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Make a call, or go on with one that was asked about, and return what the model is given."""
        run, call = self.run_of(ctx), ToolCall(self.name, normal(arguments), ctx.tool_call_id)

        def answer(request: ApprovalRequest) -> Grant | None:
            known = self.tools.runs.answer_to(request)
            return plain_grant(request) if known is None and self._is_approved(ctx) else known

        def lost(request: ApprovalRequest) -> Grant | None:
            return answer(request) if is_as_seen(request) else None  # they may have approved every call of the tool

        outcome = await self.tools.call(call, run, answer=answer, lost=lost)
        if not isinstance(outcome, Completed):
            return outcome.text()
        shown = render(outcome)
        return _CONTENT.contents(shown) if shown.parts else shown.text

    def run_of(self, ctx: RunContextWrapper[Any], run_id: str = "") -> Run:
        """Return the run of the calls of one run of an agent, with the SDK's context for the tools.

        Args:
            run_id: Its id, for code outside the agent's run; that of the current trace when empty.
        """
        run = self.open_run(ctx, run_id)
        if run.features:
            recall_transcript(run, self.tools.pipeline.toolset, ctx.turn_input, "openai_responses")
        return run

    def open_run(self, ctx: RunContextWrapper[Any], run_id: str = "") -> Run:
        """Return the same, without what the model was told."""
        trace = get_current_trace()
        trace_id = run_id or ("" if trace is None else trace.trace_id)
        trace_id = trace_id if trace_id.startswith("trace_") else ""  # others are not ids of a trace that is exported
        about = id(ctx.usage) if ctx.context is None else id(ctx.context)
        provide = {RunContextWrapper: ctx, ToolContext: ctx}
        return self.tools.runs.find(
            (trace_id, about), ctx, run_id=trace_id, deps=ctx.context, provide=provide, conversation=about
        )

    def _is_approved(self, ctx: ToolContext[Any]) -> bool:
        if ctx.tool_call is None or ctx.agent is None:
            return False
        item = ToolApprovalItem(agent=ctx.agent, raw_item=ctx.tool_call, tool_name=ctx.tool_name)  # pyright: ignore[reportArgumentType] -- a public agent is an Agent
        return ctx.get_approval_status(ctx.tool_name, ctx.tool_call_id, current_invocation=item) is True


def normal(arguments: str) -> str:
    """Return arguments as `needs_approval` is given them; another text, or one with a key twice, as it is."""
    value = _object_in(arguments)
    return arguments if value is None else json.dumps(value)


def is_object(arguments: str) -> bool:
    """Return whether arguments are an object: of another text, the SDK asks before we are asked."""
    return _object_in(arguments) is not None


def _object_in(arguments: str) -> dict[str, Any] | None:
    try:
        value: Any = read_json(arguments)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _data_url(media: Media) -> str:
    return f"data:{media.mime_type};base64,{media.base64}"


_CONTENT = MediaForms(
    text=lambda text: ToolOutputText(text=text),
    kinds={
        "image": lambda media: ToolOutputImage(image_url=_data_url(media)),
        "": lambda media: ToolOutputFileContent(file_data=_data_url(media), filename=media.name or "file"),
    },
    links={
        "image": lambda media: ToolOutputImage(image_url=media.url),
        "": lambda media: ToolOutputFileContent(file_url=media.url),
    },
)
