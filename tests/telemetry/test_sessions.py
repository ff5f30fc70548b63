"""Sessions as spans: the requests to the model and the calls of one answer in one trace."""

from collections.abc import Iterator
from typing import Any

import pydantic_ai
import pytest
from opentelemetry.trace import SpanKind, StatusCode
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

from tests.telemetry.conftest import Watch
from toolcrib.adapters.pydantic_ai import as_tools, chat_model
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import InvalidOutput
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.rounds import ChatRequest, Finished, NeedsTools, Session, ToolRoundPlan
from toolcrib.testing import FakeSandbox, ScriptedModel, wire_reply
from toolcrib.tools import ez_tool


@ez_tool
async def double(n: int) -> int:
    return n * 2


@ez_tool(requires_approval=True)
async def refund(order: int) -> int:
    return order


class Counting:
    """A model of a provider, whose replies say what they took."""

    model, provider = "large-1", "openai"

    def __init__(self, *steps: Any) -> None:
        self._steps = iter(steps)

    async def reply(self, request: ChatRequest) -> object:
        step = next(self._steps)
        if isinstance(step, Exception):
            raise step
        calls: list[ToolCall] = [] if isinstance(step, str) else step
        text = step if isinstance(step, str) else ""
        cached = {"cached_tokens": 2, "cache_write_tokens": 1}
        thoughts = {"reasoning_tokens": 2}
        details = {"prompt_tokens_details": cached, "completion_tokens_details": thoughts}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, **details}
        return {**wire_reply("openai", calls, text=text), "usage": usage, "model": "large-1-0924"}


ONE_CALL: Any = {"chat large-1": {}, "execute_tool double": {}}


async def test_a_session_is_one_trace_with_its_requests_and_calls(watch: Watch) -> None:
    model = Counting([ToolCall("double", {"n": 2})], "It is 4.")
    run = Run(sinks=(watch.sink(),), channel=Channel(agent="sums", conversation_id="c-1"))

    await Session(model, tools=[double], run=run).say("2 times 2?").run()

    assert watch.tree() == {"invoke_agent sums": ONE_CALL}
    whole, *chats = [span for span in reversed(watch.spans) if span.name != "execute_tool double"]
    assert len(chats) == 2
    last, about = chats[0].attributes or {}, whole.attributes or {}
    assert chats[0].kind is SpanKind.CLIENT
    assert last["gen_ai.operation.name"] == "chat"
    assert (last["gen_ai.provider.name"], last["gen_ai.request.model"]) == ("openai", "large-1")
    assert last["gen_ai.response.model"] == "large-1-0924"
    assert last["gen_ai.response.finish_reasons"] == ("stop",)
    assert (last["gen_ai.usage.input_tokens"], last["gen_ai.usage.output_tokens"]) == (7, 3)
    assert last["gen_ai.usage.cache_read.input_tokens"] == 2
    assert last["gen_ai.usage.cache_creation.input_tokens"] == 1
    assert (last["gen_ai.usage.reasoning.output_tokens"], about["gen_ai.usage.reasoning.output_tokens"]) == (2, 4)
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.conversation.id"] == last["gen_ai.conversation.id"] == "c-1"
    assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (14, 6)
    tokens = {p.attributes["gen_ai.token.type"]: p.sum for p in watch.points("gen_ai.client.token.usage")}
    assert tokens == {"input": 14, "output": 6}


async def test_a_wire_format_stands_for_the_provider_whose_own_it_is(watch: Watch) -> None:
    model = Counting("Hi.")
    model.provider = "bedrock"

    await Session(model, run=Run(sinks=(watch.sink(),))).say("Hello.").run()

    assert {(span.attributes or {})["gen_ai.provider.name"] for span in watch.spans} == {"aws.bedrock"}


async def test_a_loop_of_the_hosts_own_is_one_trace_for_each_answer(watch: Watch) -> None:
    model = Counting([ToolCall("double", {"n": 2})], "It is 4.", "No.")
    session = Session(model, tools=Pipeline([double], sinks=[watch.sink()])).say("2 times 2?")

    step: Any = await session.step()
    while isinstance(step, NeedsTools):
        plan = await step.round.apply_hooks()
        await plan.commit(session, await plan.run_pending())
        step = await session.step()
    await session.say("Not 5?").step()

    assert isinstance(step, Finished)
    roots = [span for span in watch.spans if span.parent is None]
    assert [span.name for span in roots] == ["invoke_agent session"] * 2
    [call] = [span for span in watch.spans if span.name == "execute_tool double"]
    assert watch.place(call).trace_id == watch.place(roots[0]).trace_id != watch.place(roots[1]).trace_id


async def test_what_ends_a_request_is_in_its_span(watch: Watch) -> None:
    session = Session(Counting(ConnectionError("no route"), "seven"), run=Run(sinks=(watch.sink(),)))

    with pytest.raises(ConnectionError):
        await session.say("2 times 2?").run()
    with pytest.raises(InvalidOutput):
        await session.run(output=int)

    ends = [(s.name, s.status.status_code, (s.attributes or {}).get("error.type")) for s in watch.spans]
    assert ends == [
        ("chat large-1", StatusCode.ERROR, "ConnectionError"),
        ("invoke_agent session", StatusCode.ERROR, "ConnectionError"),
        ("chat large-1", StatusCode.UNSET, None),
        ("invoke_agent session", StatusCode.ERROR, "InvalidOutput"),
    ]


async def test_a_session_that_goes_on_in_another_process_is_linked(watch: Watch) -> None:
    store, tools = MemoryApprovalStore(), [refund]
    first = Session(
        Counting([ToolCall("refund", {"order": 7}, "call_1")]),
        tools=tools,
        run=Run(sinks=(watch.sink(),), approvals=store),
    )
    plan = await first.say("Refund 7").run()
    assert isinstance(plan, ToolRoundPlan)
    saved = first.to_json()

    await store.answer(plan.suspended[0].request.grant("ada"))
    run = Run(sinks=(watch.sink(),), approvals=store)
    second = await Session.from_json(Counting("Done."), saved, run=run, tools=tools)
    await second.run()

    before, after = [span for span in watch.spans if span.name == "invoke_agent session"]
    assert [(span.attributes or {})["toolcrib.outcome"] for span in (before, after)] == ["paused", "completed"]
    assert watch.linked(after) == [watch.place(before).span_id]
    made = [s for s in watch.spans if s.name == "execute_tool refund"]
    assert [s.parent.span_id for s in made if s.parent] == [watch.place(before).span_id, watch.place(after).span_id]


async def test_programs_and_sessions_inside_of_calls_are_in_the_same_trace(watch: Watch) -> None:
    @ez_tool
    async def think(about: str) -> str:
        answer = await Session(Counting("Five."), run=None).say(about).run()
        return str(getattr(answer, "result", ""))

    run_python = Toolkit([double], sandbox=FakeSandbox(("double", {"n": 1}))).as_tool()
    model = Counting([ToolCall("think", {"about": "x"}), ToolCall("run_python", {"code": "double(n=1)"})], "Done.")

    await (
        Session(model, tools=[think, run_python], run=Run(sinks=(watch.sink(),), channel=Channel(agent="outer")))
        .say("Go")
        .run()
    )

    tree = watch.tree()["invoke_agent outer"]
    assert tree["execute_tool think"] == {"invoke_agent outer": {"chat large-1": {}}}
    assert tree["execute_tool run_python"] == {"program": {"execute_tool double": {}}}
    assert len({watch.place(span).trace_id for span in watch.spans}) == 1


# --- inside Pydantic AI


@pytest.fixture
def instrumented(watch: Watch) -> Iterator[None]:
    pydantic_ai.Agent.instrument_all(
        InstrumentationSettings(tracer_provider=watch.tracers, meter_provider=watch.meters)
    )
    yield
    pydantic_ai.Agent.instrument_all(False)


def failing(messages: Any, info: Any) -> ModelResponse:
    return ModelResponse([ToolCallPart("double", {"n": "x"}) if len(messages) == 1 else TextPart("no")])


@pytest.mark.usefixtures("instrumented")
async def test_a_call_has_one_span_inside_pydantic_ai_that_makes_one_too(watch: Watch) -> None:
    agent = pydantic_ai.Agent(TestModel(), toolsets=[as_tools([double], sinks=[watch.sink()])], name="trips")

    await agent.run("2 times 2?")

    assert [span.name for span in watch.spans].count("execute_tool double") == 1
    span = watch.span("execute_tool double")
    said = span.attributes or {}
    assert (said["toolcrib.outcome"], said["toolcrib.entry"]) == ("completed", "pydantic_ai")
    assert "toolcrib.started" in [event.name for event in span.events]
    assert [p.value for p in watch.points("toolcrib.tool.calls")] == [1]
    assert list(watch.tree()) == ["invoke_agent trips"]


@pytest.mark.usefixtures("instrumented")
async def test_a_call_that_fails_inside_pydantic_ai_is_an_error_once(watch: Watch) -> None:
    agent = pydantic_ai.Agent(FunctionModel(failing), toolsets=[as_tools([double], sinks=[watch.sink()])])

    await agent.run("2 times 2?")

    span = watch.span("execute_tool double")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["toolcrib.outcome"] == "failed"


async def test_a_call_has_one_span_inside_pydantic_ai_that_makes_none(watch: Watch) -> None:
    agent = pydantic_ai.Agent(TestModel(), toolsets=[as_tools([double], sinks=[watch.sink()])])

    await agent.run("2 times 2?")

    assert list(watch.tree()) == ["execute_tool double"]


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_model_of_pydantic_ai_that_makes_spans_has_no_second_one(watch: Watch, stream: bool) -> None:
    session = Session(chat_model(TestModel(), stream=stream), tools=[double], run=Run(sinks=(watch.sink(),)))

    await session.say("2 times 2?").run()

    chats = [span for span in watch.spans if span.name.startswith("chat")]
    assert len(chats) == 2
    assert {(span.instrumentation_scope.name if span.instrumentation_scope else "") for span in chats} == {
        "pydantic-ai"
    }
    assert watch.tree() == {"invoke_agent session": {"chat test": {}, "execute_tool double": {}}}


async def test_a_model_of_pydantic_ai_that_makes_no_spans_has_ours(watch: Watch) -> None:
    session = Session(chat_model(TestModel()), run=Run(sinks=(watch.sink(),)))

    await session.say("2 times 2?").run()

    assert watch.tree() == {"invoke_agent session": {"chat test": {}}}


async def test_a_scripted_model_has_no_name(watch: Watch) -> None:
    await Session(ScriptedModel("Hi."), run=Run(sinks=(watch.sink(),))).say("Hi").run()

    assert watch.tree() == {"invoke_agent session": {"chat": {}}}
