"""`chat_model`: sessions with Pydantic AI's models."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.adapters.pydantic_ai.scripted import refunding, scripted
from toolcrib.adapters.pydantic_ai import chat_model
from toolcrib.errors import InvalidOutput
from toolcrib.rounds import Finished, NeedsTools, Session, Stopped, ToolRoundPlan
from toolcrib.toolsets import ToolRequirement


def answering(*parts: Any, seen: list[Any], **options: Any) -> FunctionModel:
    """Return a model that gives one answer after the other, and notes what it was asked."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        return ModelResponse(list(parts[len(seen) - 1]), **options)

    return FunctionModel(answer)


def saying(*pieces: str, seen: list[AgentInfo]) -> FunctionModel:
    """Return a model that says the same in pieces and at once."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return ModelResponse([TextPart("".join(pieces))])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.append(info)
        for piece in pieces:
            yield piece

    return FunctionModel(answer, stream_function=stream)


async def test_a_session_runs_with_a_model_of_pydantic_ai() -> None:
    ran: list[Any] = []
    model = chat_model(scripted([("refund", '{"order": 7}', "c1"), ("refund", {"order": "x"}, "c2")]))
    session = Session(model, tools=[refunding(ran, requires_approval=False)]).say("Refund order 7.")

    done = await session.run()

    assert isinstance(done, Finished)
    assert (done.result, ran) == ("done", [(7, 100)])
    assert session.transcript.check() == []


async def test_the_gates_hold() -> None:
    ran: list[Any] = []
    session = Session(chat_model(scripted([("refund", {"order": 7}, "c1")])), tools=[refunding(ran)]).say("Go.")

    plan = await session.run()

    assert isinstance(plan, ToolRoundPlan)
    assert ([waiting.request.tool for waiting in plan.suspended], ran) == (["refund"], [])


async def test_what_is_asked_arrives() -> None:
    seen: list[Any] = []
    model = chat_model(answering([TextPart("ok")], seen=seen), settings={"temperature": 0.5})
    tool = refunding([])
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    past = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, picture]},
        {"role": "assistant", "content": "I see."},
    ]

    session = Session(model, system="Be brief.", tools=[tool], transcript=past).say("Refund it.")
    await session.step(require=ToolRequirement.specific("refund"), describe={"refund": "Pay back."})

    [(messages, info)] = seen
    assert [part.part_kind for message in messages for part in message.parts] == [
        "system-prompt",
        "user-prompt",
        "text",
        "user-prompt",
    ]
    assert messages[0].parts[1].content == ["Look:", ImageUrl(url="https://example.com/a.png")]
    assert info.instructions == "Be brief."
    assert info.model_settings == {"temperature": 0.5, "tool_choice": ["refund"]}
    assert [(t.description, t.parameters_json_schema) for t in info.function_tools] == [("Pay back.", tool.parameters)]


async def test_results_and_signed_thoughts_go_back_with_their_calls() -> None:
    seen: list[Any] = []
    thought = ThinkingPart("hm", signature="sig", provider_name="anthropic")
    call = ToolCallPart("refund", {"order": 7}, "c1", provider_name="google", provider_details={"signature": "x"})
    model = chat_model(answering([thought, call], [TextPart("done")], seen=seen))

    await Session(model, tools=[refunding([], requires_approval=False)]).say("Go.").run()

    _, answer, request = seen[1][0]
    assert [*answer.parts] == [thought, replace(call, args='{"order":7}')]
    assert isinstance(request, ModelRequest)
    [result] = request.parts
    assert isinstance(result, ToolReturnPart)
    assert (result.tool_name, result.tool_call_id, result.content) == ("refund", "c1", "refunded 100 on 7")


@pytest.mark.parametrize("native", [True, False])
async def test_an_answer_may_have_a_type(native: bool) -> None:
    class City(BaseModel):
        name: str

    seen: list[Any] = []
    inner = answering([TextPart('{"name": "Oslo"}')], seen=seen)
    inner.profile["supports_json_schema_output"] = native

    done = await Session(chat_model(inner)).say("Where?").step(output=City)

    assert isinstance(done, Finished)
    assert done.result == City(name="Oslo")
    assert seen[0][1].model_request_parameters.output_mode == ("native" if native else "prompted")


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_no_object_is_asked_for_in_one(stream: bool) -> None:
    class City(BaseModel):
        name: str

    seen: list[Any] = []
    said: list[str] = []
    answer = '```json\n{"value": [{"name": "Oslo"}]}\n```'
    model = chat_model(saying(answer, seen=seen), stream=stream)

    done = await Session(model).say("Where?").step(output=list[City], on_text=said.append)

    assert isinstance(done, Finished)
    assert (done.result, done.text) == ([City(name="Oslo")], answer)
    asked = seen[0].model_request_parameters.output_object.json_schema
    assert (asked["type"], asked["required"], "City" in asked["$defs"]) == ("object", ["value"], True)
    assert said == [answer]


async def test_an_answer_that_is_not_what_was_asked_for_is_refused() -> None:
    with pytest.raises(InvalidOutput):
        await Session(chat_model(saying("Oslo", seen=[]))).say("Where?").step(output=list[int])


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_comes_in_pieces_when_somebody_listens(stream: bool) -> None:
    said: list[str] = []
    session = Session(chat_model(saying("Hello ", "you.", seen=[]), stream=stream)).say("Hi.")

    done = await session.step(on_text=said.append)

    assert isinstance(done, Finished)
    assert (done.result, said) == ("Hello you.", ["Hello ", "you."])
    assert session.transcript[-1] == {"role": "assistant", "content": "Hello you."}


async def test_calls_come_at_the_end_of_a_stream() -> None:
    ran: list[Any] = []
    calls = [("refund", '{"order": 7}', "c1"), ("refund", '{"order": "x"}', "c2")]
    model = chat_model(scripted(calls), stream=True)
    session = Session(model, tools=[refunding(ran, requires_approval=False)]).say("Refund order 7.")

    done = await session.run()

    assert isinstance(done, Finished)
    assert (done.result, ran, session.transcript.check()) == ("done", [(7, 100)], [])


async def test_a_strict_tool_is_strict_for_the_model() -> None:
    seen: list[AgentInfo] = []
    model = chat_model(saying("ok", seen=seen))

    await Session(model, tools=[refunding([])], strict=True).say("Hi.").step()

    assert [tool.strict for tool in seen[0].function_tools] == [True]


async def test_a_cut_answer_says_so() -> None:
    model = chat_model(answering([TextPart("Once upon")], seen=[], finish_reason="length"))

    done = await Session(model).say("Tell.").step()

    assert isinstance(done, Stopped)
    assert done.reason == "length"
    assert "cut" in done.problems[0]


async def test_arguments_that_are_no_json_are_refused_and_go_back_empty() -> None:
    seen: list[Any] = []
    model = answering([ToolCallPart("refund", '{"order": "7', "c1")], [TextPart("Sorry.")], seen=seen)
    session = Session(chat_model(model), tools=[refunding([])]).say("Refund order 7.")

    made = await session.step()
    assert isinstance(made, NeedsTools)
    await made.round.commit(session)
    await session.step()

    assert "not valid JSON" in made.round.recoverable_issues[0].reason
    assert session.transcript[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert seen[1][0][1].parts[0].args == "{}"


async def test_a_model_is_named_like_for_an_agent() -> None:
    made = await Session(chat_model("test"), tools=[refunding([])]).say("Go.").step()

    assert isinstance(made, NeedsTools)


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"format": "anthropic"}, "format='openai'"),
        ({"transcript": [{"role": "function", "content": "x"}]}, "'function'"),
        ({"transcript": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "'input_audio'"),
        ({"provider_tools": [{"type": "web_search"}]}, "provider_tools"),
    ],
)
async def test_what_cannot_be_translated_is_an_error(options: dict[str, Any], mend: str) -> None:
    session = Session(chat_model(TestModel()), **options)

    with pytest.raises(ValueError, match=mend):
        await session.step()
