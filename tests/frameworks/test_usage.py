"""Usage of the agents of all frameworks, on the record of the run that their calls belong to."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Annotated, Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agents import Agent, Runner, Usage, function_tool
from agents.testing import ModelStep, assistant_message, function_call
from agents.testing import ScriptedModel as OpenAIModel
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner as ADKRunner
from google.adk.sessions import InMemorySessionService
from google.genai.types import GenerateContentResponseUsageMetadata as Metadata
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage
from smolagents import AgentError, ToolCallingAgent, tool
from smolagents.monitoring import TokenUsage
from typer.testing import CliRunner

from tests.frameworks.scripted import Scripted
from tests.frameworks.scripted_adk import ScriptedLlm, calling, saying
from tests.frameworks.scripted_agent_framework import ScriptedClient
from tests.frameworks.scripted_agent_framework import calling as framework_calling
from tests.frameworks.scripted_smolagents import QUIET, Script
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters import agent_framework, claude_agent_sdk, google_adk, langchain, openai_agents, smolagents
from toolcrib.adapters import pydantic_ai as pydantic
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.cli import app
from toolcrib.pipeline import Run
from toolcrib.record import ActivityFilter, RunSummary, SqliteSink, list_runs
from toolcrib.schema import Injected
from toolcrib.serving import GuardPolicy
from toolcrib.tools import ez_tool

FIRST, SECOND = (10, 2, 4), (20, 3, 0)
"""Input, output and cached tokens of the request whose answer calls the tool, and of the one after it; one of the
output is a thought."""

OSLO: dict[str, Any] = {"city": "Oslo"}


# --- scripts: a request whose answer calls the tool, and one whose answer ends the run


def openai_model() -> OpenAIModel:
    steps = ([function_call("book", OSLO, call_id="c1")], FIRST), ([assistant_message("done")], SECOND)
    return OpenAIModel([ModelStep(output, openai_usage(*took)) for output, took in steps])


def openai_usage(read: int, written: int, cached: int) -> Usage:
    details = InputTokensDetails(cached_tokens=cached, cache_write_tokens=0)
    return Usage(1, read, details, written, OutputTokensDetails(reasoning_tokens=1), read + written)


def langchain_model() -> Scripted:
    call = {"name": "book", "args": OSLO, "id": "c1", "type": "tool_call"}
    return Scripted(responses=[langchain_answer(FIRST, [call]), langchain_answer(SECOND, [])])


def langchain_answer(took: tuple[int, int, int], calls: list[Any]) -> AIMessage:
    read, written, cached = took
    details: Any = {"input_token_details": {"cache_read": cached}, "output_token_details": {"reasoning": 1}}
    usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": 0, **details}
    return AIMessage("" if calls else "done", usage_metadata=usage, tool_calls=calls)


def adk_model() -> ScriptedLlm:
    usage = [
        Metadata(
            prompt_token_count=read,
            candidates_token_count=written - 1,
            thoughts_token_count=1,
            cached_content_token_count=cached,
        )
        for read, written, cached in (FIRST, SECOND)
    ]
    return ScriptedLlm(steps=[calling(("book", OSLO))], usage=usage)


def framework_client() -> ScriptedClient:
    client = ScriptedClient(framework_calling(("book", OSLO)))
    client.usage = [
        {
            "input_token_count": read,
            "output_token_count": written,
            "cache_read_input_token_count": cached,
            "reasoning_output_token_count": 1,
        }
        for read, written, cached in (FIRST, SECOND)
    ]
    return client


def smolagents_model() -> Script:
    model = Script([("book", OSLO)])
    model.usage = [TokenUsage(read, written) for read, written, _ in (FIRST, SECOND)]
    return model


def claude_usage(*several: tuple[int, int, int]) -> dict[str, int]:
    read, written, cached = map(sum, zip(*several, strict=True))
    return {"input_tokens": read - cached, "cache_read_input_tokens": cached, "output_tokens": written}


def pydantic_model() -> FunctionModel:
    answers = [
        ModelResponse(
            [part],
            usage=RequestUsage(
                input_tokens=read, output_tokens=written, cache_read_tokens=cached, output_reasoning_tokens=1
            ),
        )
        for part, (read, written, cached) in ((ToolCallPart("book", OSLO, "c1"), FIRST), (TextPart("done"), SECOND))
    ]

    async def model(messages: Any, info: Any) -> ModelResponse:
        return answers.pop(0)

    return FunctionModel(model)


# --- agents with tools of ours, which go on until nobody is asked any more


async def in_openai_agents(tools: Any, sink: SqliteSink) -> None:
    given = openai_agents.as_tools(tools, sinks=[sink])
    agent, hooks = Agent("trips", tools=[*given], model=openai_model()), openai_agents.UsageHooks(given)
    result = await Runner.run(agent, "go", hooks=hooks)
    while result.interruptions:
        state = result.to_state()
        await openai_agents.answers(state, *[one.grant() for one in await openai_agents.approval_requests(state)])
        result = await Runner.run(agent, state, hooks=hooks)


async def in_langchain(tools: Any, sink: SqliteSink) -> None:
    given = langchain.as_tools(tools, sinks=[sink])
    counting = langchain.UsageMiddleware(given)
    agent: Any = create_agent(langchain_model(), given, middleware=[counting], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    result = await agent.ainvoke({"messages": "go"}, config)
    while waiting := result.get("__interrupt__"):
        grants = [one.grant() for one in langchain.approval_requests(waiting)]
        result = await agent.ainvoke(Command(resume=langchain.answers(waiting, *grants)), config)


async def in_google_adk(tools: Any, sink: SqliteSink) -> None:
    given: Any = google_adk.as_tools(tools, sinks=[sink])
    agent = LlmAgent(name="trips", model=adk_model(), tools=given)
    await adk_run(agent, google_adk.UsagePlugin(given))


async def adk_run(agent: LlmAgent, plugin: Any) -> None:
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="trips", user_id="ann", session_id="s")
    runner = ADKRunner(app=App(name="trips", root_agent=agent, plugins=[plugin]), session_service=sessions)
    said = saying("go")
    while True:
        events = [each async for each in runner.run_async(user_id="ann", session_id="s", new_message=said)]
        waiting = google_adk.approval_requests(events)
        if not waiting:
            return
        said = google_adk.answers(events, *[one.grant() for one in waiting])


async def in_agent_framework(tools: Any, sink: SqliteSink, *, stream: bool = False) -> None:
    provider = agent_framework.as_tools(tools, sinks=[sink])
    agent = FrameworkAgent(framework_client(), context_providers=[provider])
    session, said = agent.create_session(), "go"
    while True:
        if stream:
            response = await agent.run(said, session=session, stream=True).get_final_response()
        else:
            response = await agent.run(said, session=session)
        asked = response.user_input_requests
        if not asked:
            return
        grants = [one.grant() for one in agent_framework.approval_requests(asked)]
        said: Any = await agent_framework.answers(asked, *grants, agent=agent, session=session)


async def in_agent_framework_stream(tools: Any, sink: SqliteSink) -> None:
    await in_agent_framework(tools, sink, stream=True)


async def in_claude_agent_sdk(tools: Any, sink: SqliteSink) -> None:
    options = claude_agent_sdk.as_tools(tools, sinks=[sink])
    calls, sessions = [[("c1", "mcp__toolcrib__book", OSLO)]], dict[str, Any]()
    asks = tools[0].options.requires_approval
    for usage in [claude_usage(FIRST), claude_usage(SECOND)] if asks else [claude_usage(FIRST, SECOND)]:
        session = await claude_run(options, calls, sessions=sessions, usage=usage)
        grants = [one.grant() for one in claude_agent_sdk.approval_requests(options, session)]
        options, calls = await claude_agent_sdk.answers(options, session, *grants), []


async def claude_run(options: Any, calls: Any, **cli: Any) -> str:
    session = ""
    async for message in query(prompt="go", options=options, transport=ScriptedCli(options, calls, **cli)):
        claude_agent_sdk.record_usage(options, message)
        session = message.session_id if isinstance(message, ResultMessage) else session
    return session


async def in_smolagents(tools: Any, sink: SqliteSink) -> None:
    agent = smolagents.as_tools(tools, ToolCallingAgent([], smolagents_model(), **QUIET), sinks=[sink])
    try:
        await asyncio.to_thread(agent.run, "go")
    except AgentError:
        grants = [one.grant() for one in smolagents.approval_requests(agent)]
        task = await asyncio.to_thread(smolagents.answers, agent, *grants)
        await asyncio.to_thread(agent.run, task, reset=False)


async def in_pydantic_ai(tools: Any, sink: SqliteSink) -> None:
    given = [pydantic.as_tools(tools, sinks=[sink]), pydantic.as_tools([ez_tool(name="other")(len)], sinks=[sink])]
    agent = PydanticAgent(pydantic_model(), toolsets=given, output_type=[str, DeferredToolRequests])
    run = await agent.run("go")
    while isinstance(run.output, DeferredToolRequests):
        results = await pydantic.answers(run.output, *(one.grant() for one in pydantic.approval_requests(run.output)))
        run = await agent.run(message_history=run.all_messages(), deferred_tool_results=results)


# --- agents with tools of their own, guarded


async def guarded_in_openai_agents(policy: GuardPolicy) -> None:
    agent = Agent("trips", tools=[function_tool(book)], model=openai_model())
    guarded = openai_agents.guard(agent, policy)
    await Runner.run(guarded, "go", hooks=openai_agents.UsageHooks(guarded))


async def guarded_in_langchain(policy: GuardPolicy) -> None:
    agent: Any = create_agent(langchain_model(), [book], middleware=[langchain.GuardMiddleware(policy)])
    await asyncio.to_thread(agent.invoke, {"messages": "go"})


async def guarded_in_google_adk(policy: GuardPolicy) -> None:
    await adk_run(LlmAgent(name="trips", model=adk_model(), tools=[book]), google_adk.GuardPlugin(policy))


async def guarded_in_agent_framework(policy: GuardPolicy) -> None:
    providers = [agent_framework.GuardProvider(policy)]
    await FrameworkAgent(framework_client(), tools=[book], context_providers=providers).run("go")


async def guarded_in_claude_agent_sdk(policy: GuardPolicy) -> None:
    options = claude_agent_sdk.guard(ClaudeAgentOptions(permission_mode="bypassPermissions"), policy)
    calls, usage = [[("c1", "book", OSLO)]], claude_usage(FIRST, SECOND)
    await claude_run(options, calls, usage=usage, builtin={"book": "booked"})


async def guarded_in_smolagents(policy: GuardPolicy) -> None:
    agent = smolagents.guard(ToolCallingAgent([tool(book)], smolagents_model(), **QUIET), policy)
    await asyncio.to_thread(agent.run, "go")


def book(city: str) -> str:
    """Book a room.

    Args:
        city: Where.
    """
    return f"booked {city}"


WITH_TOOLS = [
    in_openai_agents,
    in_langchain,
    in_google_adk,
    in_agent_framework,
    in_agent_framework_stream,
    in_claude_agent_sdk,
    in_smolagents,
    in_pydantic_ai,
]
GUARDED = [
    guarded_in_openai_agents,
    guarded_in_langchain,
    guarded_in_google_adk,
    guarded_in_agent_framework,
    guarded_in_claude_agent_sdk,
    guarded_in_smolagents,
]


@pytest.mark.parametrize("framework", WITH_TOOLS)
@pytest.mark.parametrize("asks", [False, True])
async def test_the_record_has_the_tokens_of_an_agent_once(framework: Any, asks: bool, tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "runs.db") as sink:
        await framework([ez_tool(requires_approval=asks)(book)], sink)

    log = SqliteSink(tmp_path / "runs.db").log()
    runs, requests = list_runs(log), log.activities(ActivityFilter(sources=("chat",)))
    cached = 0 if framework is in_smolagents else 4  # of which smolagents says nothing
    thoughts = 0 if framework in (in_smolagents, in_claude_agent_sdk) else 2
    assert counted(runs) == (30, 5, cached, thoughts)
    assert {one.parent_id for one in requests} == {run.id for run in runs}
    assert all(one.ended_at is not None for one in requests)


def test_an_agent_of_smolagents_that_goes_on_in_another_process_is_counted_there(tmp_path: Path) -> None:
    store, tools = SqliteApprovalStore(tmp_path / "approvals.db"), [ez_tool(requires_approval=True)(book)]
    with SqliteSink(tmp_path / "runs.db") as sink:

        def made() -> Any:
            agent = ToolCallingAgent([], smolagents_model(), **QUIET)
            return smolagents.as_tools(tools, agent, run=lambda agent: Run(approvals=store), sinks=[sink])

        first, again = made(), made()
        with pytest.raises(AgentError):
            first.run("go")
        again.memory.steps = pickle.loads(pickle.dumps(first.memory.steps))
        again.model = Script()
        again.model.usage = [TokenUsage(*SECOND[:2])]
        [request] = smolagents.approval_requests(first)
        again.run(smolagents.answers(again, request.grant()), reset=False)

    assert counted(list_runs(SqliteSink(tmp_path / "runs.db").log())) == (30, 5, 0, 0)


@pytest.mark.parametrize("framework", GUARDED)
async def test_a_guard_records_the_tokens_of_an_agent(framework: Any, tmp_path: Path) -> None:
    database = str(tmp_path / "runs.db")
    with SqliteSink(database) as sink:
        await framework(GuardPolicy(sinks=(sink,)))

    [run] = list_runs(SqliteSink(database).log())
    listed = CliRunner().invoke(app, ["runs", database], env={"COLUMNS": "200"}).output
    traced = CliRunner().invoke(app, ["trace", run.id, "--database", database]).output
    cached = 0 if framework is guarded_in_smolagents else 4
    thoughts = 0 if framework in (guarded_in_smolagents, guarded_in_claude_agent_sdk) else 2
    assert counted([run]) == (30, 5, cached, thoughts)
    assert run.calls == {"completed": 1}
    assert "35 tokens" in listed
    assert "tokens in" in traced


async def test_an_agent_of_pydantic_ai_inside_of_a_tool_is_counted_once(tmp_path: Path) -> None:
    inner = PydanticAgent(pydantic_model(), toolsets=[pydantic.as_tools([ez_tool(book)])])

    @ez_tool(name="book")
    async def delegate(city: str, ctx: Annotated[RunContext, Injected]) -> str:
        """Have another agent book a room."""
        return (await inner.run(city, usage=ctx.usage)).output

    with SqliteSink(tmp_path / "runs.db") as sink:
        run = Run(sinks=(sink,))
        await PydanticAgent(pydantic_model(), toolsets=[pydantic.as_tools([delegate], run=run)]).run("go")

    [listed] = list_runs(SqliteSink(tmp_path / "runs.db").log())
    assert counted([listed]) == (60, 10, 8, 4)


def counted(runs: list[RunSummary]) -> tuple[int, ...]:
    """Return the input, output, cached and reasoning tokens of runs."""
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    return tuple(sum(run.usage[name] for run in runs if run.usage is not None) for name in names)
