"""A toolset of Pydantic AI as a member of one of ours."""

import json
from typing import Any, Literal

import pydantic_ai
import pytest
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from tests.adapters.pydantic_ai.scripted import agent, refunding, results, scripted
from toolcrib.adapters.pydantic_ai import as_tools, from_tools
from toolcrib.calls import Complete, Completed, Failed, Outcome, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.schema import RunContext
from toolcrib.toolsets import Toolset, ToolSource


def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """Tell the weather.

    Args:
        city: Where.
    """
    return f"sunny in {city}, in {unit}"


async def called(tools: Any, name: str, arguments: Any = "{}", scope: Run | None = None) -> Outcome:
    """Open a toolset, and make one call."""
    scope = scope or Run()
    made = Toolset(from_tools(tools)) if not isinstance(tools, Toolset) else tools
    async with made.open(RunContext(scope.deps, "", "", scope.id)) as opened:
        return await Pipeline(opened).run(ToolCall(name, arguments, "c1"), scope)


async def test_a_tool_of_theirs_is_called_over_the_pipeline() -> None:
    sink = ListSink()

    outcome = await called(FunctionToolset([weather]), "weather", '{"city": "Oslo"}', Run(sinks=(sink,)))

    assert isinstance(outcome, Completed)
    assert outcome.value == "sunny in Oslo, in c"
    assert sink.records[0].arguments == {"city": "Oslo"}


async def test_what_is_known_of_a_tool_of_theirs() -> None:
    source = from_tools(FunctionToolset([weather]))[0]

    async with Toolset([source]).open() as opened:
        entry = opened["weather"]

    assert isinstance(source, ToolSource)
    assert entry.description == "Tell the weather."
    assert entry.parameters["properties"]["city"] == {"description": "Where.", "type": "string"}
    assert entry.tool.stub().splitlines()[0] == ("def weather(city: str, unit: Literal['c', 'f'] = 'c') -> str:")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [("{}", "city"), ('{"city": 1}', "city"), ('{"city": "Oslo", "unit": "k"}', "unit"), ('{"town": "Oslo"}', "town")],
)
async def test_arguments_are_validated_with_the_field_named(arguments: str, field: str) -> None:
    outcome = await called(FunctionToolset([weather]), "weather", arguments)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("invalid_arguments", True)
    assert field in [problem.field for problem in outcome.problems]


async def test_our_gates_are_around_theirs() -> None:
    hooks = HookSet()

    @hooks.on("their_weather")
    async def known(call: Any, given: Any) -> Complete:
        return Complete("it rains")

    crib = Toolset(from_tools(FunctionToolset([weather]))).prefixed("their_")

    asked = await called(crib.with_approval(), "their_weather", {"city": "Oslo"})
    known_already = await called(crib.with_hooks(hooks), "their_weather", {"city": "Oslo"})

    assert isinstance(asked, Suspended)
    assert isinstance(known_already, Completed)
    assert known_already.value == "it rains"


async def test_their_tool_sees_our_deps_and_a_model() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()
    model, usage = TestModel(), pydantic_ai.RunUsage()

    @toolset.tool
    def look(ctx: pydantic_ai.RunContext[Any]) -> list[Any]:
        return [ctx.deps, ctx.model is model, ctx.usage is usage, ctx.tool_name, ctx.tool_call_id]

    crib = Toolset(from_tools(toolset, model=model, usage=usage))

    outcome = await called(crib, "look", scope=Run(deps="ann's"))

    assert isinstance(outcome, Completed)
    assert outcome.value == ["ann's", True, True, "look", "c1"]


async def test_without_a_model_a_request_says_so() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()

    @toolset.tool
    async def think(ctx: pydantic_ai.RunContext[Any]) -> str:
        return (await pydantic_ai.Agent(ctx.model).run("think")).output

    outcome = await called(toolset, "think")

    assert isinstance(outcome, Failed)
    assert "from_tools(..., model=...)" in outcome.message


async def test_inside_an_agent_their_tool_sees_its_run() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()

    @toolset.tool
    def look(ctx: pydantic_ai.RunContext[Any]) -> Any:
        return ToolReturn([ctx.deps, ctx.run_step, ctx.usage.requests])

    crib = as_tools(from_tools(toolset))
    run = await agent(scripted([("look", "{}", "c1")]), crib, deps_type=str).run("go", deps="ann's")

    assert results(run.all_messages()) == [("c1", "success", ["ann's", 1, 1])]


async def test_a_tool_that_wants_a_retry_or_fails() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()

    @toolset.tool_plain
    def retry() -> None:
        raise pydantic_ai.ModelRetry("the full name")

    @toolset.tool_plain
    def fail() -> None:
        raise ToolFailed("there is none")

    @toolset.tool_plain
    def defer() -> None:
        raise CallDeferred

    retried, failed, deferred = [await called(toolset, name) for name in ("retry", "fail", "defer")]

    assert isinstance(retried, Failed)
    assert (retried.code, retried.retryable, retried.message) == ("model_retry", True, "the full name")
    assert isinstance(failed, Failed)
    assert (failed.retryable, failed.message) == (False, "there is none")
    assert isinstance(deferred, Failed)
    assert "executed elsewhere" in deferred.message


async def test_what_is_executed_elsewhere_is_not_offered() -> None:
    external: Any = ExternalToolset([ToolDefinition(name="elsewhere")])

    async with Toolset(from_tools(external)).open() as opened:
        assert opened.names() == []


# --- approval


async def granted(crib: Toolset, suspended: Outcome, **options: Any) -> Outcome:
    """Grant a suspended call from its JSON, and return what comes of it."""
    assert isinstance(suspended, Suspended)
    stored = outcome_from_dict(json.loads(json.dumps(suspended.to_dict())))
    assert isinstance(stored, Suspended)
    async with crib.open() as opened:
        return await Pipeline(opened).run(stored, Run(), grant=stored.request.grant("ann", **options))


async def test_a_tool_of_theirs_that_requires_approval_waits() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()

    @toolset.tool(requires_approval=True)
    def wipe(ctx: pydantic_ai.RunContext[Any]) -> bool:
        return ctx.tool_call_approved

    crib = Toolset(from_tools(toolset))
    waiting = await called(crib, "wipe")

    outcome = await granted(crib, waiting)

    assert isinstance(outcome, Completed)
    assert outcome.value is True


async def test_a_tool_of_theirs_may_ask_itself() -> None:
    toolset: FunctionToolset[Any] = FunctionToolset()

    @toolset.tool
    def wipe(ctx: pydantic_ai.RunContext[Any], disk: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired({"size": "2 TB"})
        return f"wiped {disk} ({ctx.tool_call_metadata['size']})"

    crib = Toolset(from_tools(toolset))
    waiting = await called(crib, "wipe", {"disk": "sda"})

    outcome = await granted(crib, waiting)

    assert isinstance(waiting, Suspended)
    assert waiting.request.metadata == {"size": "2 TB"}
    assert isinstance(outcome, Completed)
    assert outcome.value == "wiped sda (2 TB)"


@pytest.mark.parametrize(("override", "expected"), [(None, (7, 100)), ({"order": 7, "cents": 5}, (7, 5))])
async def test_ours_in_theirs_in_ours_is_approved_outside_and_recorded_inside(override: Any, expected: Any) -> None:
    ran: list[Any] = []
    sink = ListSink()
    crib = Toolset(from_tools(as_tools([refunding(ran)], sinks=[sink])))
    waiting = await called(crib, "refund", {"order": 7})

    outcome = await granted(crib, waiting, override_args=override)

    assert isinstance(outcome, Completed)
    assert ran == [expected]
    assert [record.outcome["kind"] for record in sink.records] == ["suspended", "completed"]
    assert sink.records[-1].approval["approver"] == "ann"


async def test_a_person_sees_the_arguments_that_hooks_inside_made() -> None:
    async def cap(ctx: Any, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        return {**args, "cents": 1}

    inside = as_tools(Toolset([refunding([])], pre_hooks={"refund": cap}))

    waiting = await called(Toolset(from_tools(inside)), "refund", {"order": 7})

    assert isinstance(waiting, Suspended)
    assert "  cents: 100 -> 1" in waiting.request.text()


async def test_ours_in_theirs_in_ours_in_their_agent() -> None:
    ran: list[Any] = []
    crib = as_tools(from_tools(as_tools([refunding(ran, requires_approval=False)])))

    run = await agent(scripted([("refund", "{}", "c1")], [("refund", {"order": 7}, "c2")]), crib).run("go")

    assert [outcome for _, outcome, _ in results(run.all_messages())] == ["retried", "success"]
    assert ran == [(7, 100)]


async def test_a_refusal_inside_is_a_failure_outside() -> None:
    async def no(request: Any) -> Any:
        return request.deny(message="not today", by="ann")

    crib = Toolset(from_tools(as_tools([refunding([])], run=lambda ctx: Run(approver=no))))

    outcome = await called(crib, "refund", {"order": 7})

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == ("approval_denied", False)
    assert "not today" in outcome.message


async def test_an_approval_outside_does_not_answer_another_question_inside() -> None:
    ran: list[Any] = []
    crib = Toolset(from_tools(as_tools([refunding(ran)]))).with_approval()
    waiting = await called(crib, "refund", {"order": 7})

    outcome = await granted(crib, waiting)

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.exception, ApprovalError)
    assert ran == []
