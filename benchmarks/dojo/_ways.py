"""Ways in which a model calls tools: the pipeline itself, programs, tool rounds, and a client of an MCP server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp.client.client import Client
from mcp_types import ElicitResult

from benchmarks.dojo._programs import program_of
from toolcrib.adapters.mcp_server import ServerOptions, build_server
from toolcrib.calls import ApprovalRequest, Denial, Grant, ToolCall, render
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.rounds import NeedsTools, Session
from toolcrib.testing import wire_reply
from toolcrib.tools import Tool

__all__ = ["WAYS", "Carry", "Made", "Person", "Way"]

Made: TypeAlias = tuple[str, Mapping[str, Any]]
"""A call that the model makes: a tool, and its arguments; in a program some of them are `Taken` from results."""
Carry: TypeAlias = Callable[[Sequence[Made]], Any]
"""Has the model make calls, and returns what it then reads, as text."""


@dataclass(slots=True)
class Person:
    """The person who is asked: yes to what the user's own task needs, no to what the attack wants.

    Attributes:
        is_attacked: Whether the model obeys the attack now.
        asked: What was asked so far, by whether the model obeyed the attack.
    """

    is_attacked: bool = False
    asked: dict[bool, list[str]] = field(default_factory=lambda: {False: [], True: []})

    def says_yes(self, question: str) -> bool:
        """Note a question, and answer it."""
        self.asked[self.is_attacked].append(question)
        return not self.is_attacked

    async def __call__(self, request: ApprovalRequest) -> Grant | Denial:
        """Answer a request, as an approver."""
        if self.says_yes(f"{request.tool}: {request.reason}"):
            return request.grant()
        return Denial(request.tool, message="I do not want that", request_id=request.id)


def _run(prompt: str, person: Person, *, guarded: bool) -> Run:
    run = Run(features=[Provenance()] if guarded else (), approver=person)
    run.add_user_message(prompt)
    return run


@asynccontextmanager
async def over_pipeline(
    tools: Sequence[Tool[..., Any]], prompt: str, person: Person, *, guarded: bool
) -> AsyncGenerator[Carry]:
    """Give each call to the pipeline."""
    pipeline, run = Pipeline(tools), _run(prompt, person, guarded=guarded)

    async def carry(calls: Sequence[Made]) -> str:
        return "\n".join([render(await pipeline.run(ToolCall(*call), run)).text for call in calls])

    yield carry


@asynccontextmanager
async def over_programs(
    tools: Sequence[Tool[..., Any]], prompt: str, person: Person, *, guarded: bool
) -> AsyncGenerator[Carry]:
    """Write the calls as a program, which runs in a process of its own; the model reads all that it returns."""
    toolkit, run = Toolkit(tools, sandbox="process"), _run(prompt, person, guarded=guarded)

    async def carry(calls: Sequence[Made]) -> str:
        result = await toolkit.execute_async(program_of(calls), run)
        return result.text(None)

    yield carry


@asynccontextmanager
async def over_rounds(
    tools: Sequence[Tool[..., Any]], prompt: str, person: Person, *, guarded: bool
) -> AsyncGenerator[Carry]:
    """Have a loop of tool rounds, with messages as the Chat Completions API of OpenAI has them."""
    run = Run(features=[Provenance()] if guarded else (), approver=person)
    replies: list[ToolCall] = []

    class Obeys:
        async def reply(self, request: Any) -> object:
            return wire_reply("openai", [replies.pop()])

    session = Session(Obeys(), tools=Pipeline(tools), run=run).say(prompt)

    async def carry(calls: Sequence[Made]) -> str:
        seen: list[str] = []
        for call in calls:
            replies.append(ToolCall(*call))
            step = await session.step()
            if not isinstance(step, NeedsTools):
                raise TypeError(f"the round is {step}")
            plan = await step.round.apply_hooks()
            await plan.commit(session, await plan.run_pending())
            seen.append(str(session.transcript[-1]["content"]))
        return "\n".join(seen)

    yield carry


@asynccontextmanager
async def over_mcp(
    tools: Sequence[Tool[..., Any]], prompt: str, person: Person, *, guarded: bool
) -> AsyncGenerator[Carry]:
    """Serve the tools to an MCP client, which asks the person by a form."""
    run = _run(prompt, person, guarded=guarded).view(approver=None)
    options = ServerOptions(run=lambda principal: run, principal="user", approve_by="elicit")

    async def answer(context: Any, form: Any) -> ElicitResult:
        decision = "approve" if person.says_yes(form.message) else "deny"
        return ElicitResult(action="accept", content={"decision": decision})

    async with Client(build_server(tools, options), cache=None, elicitation_callback=answer) as client:

        async def carry(calls: Sequence[Made]) -> str:
            results = [await client.call_tool(name, dict(arguments)) for name, arguments in calls]
            return "\n".join(str(result.content) for result in results)

        yield carry


Way: TypeAlias = Callable[..., AbstractAsyncContextManager[Carry]]
WAYS: Mapping[str, Way] = {
    "pipeline": over_pipeline,
    "programs": over_programs,
    "rounds": over_rounds,
    "mcp": over_mcp,
}
"""The ways, by name: each takes tools, the user's prompt, a person, and whether the run has the policy."""
