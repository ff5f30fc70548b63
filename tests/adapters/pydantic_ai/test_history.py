"""A message history of Pydantic AI as a transcript that rounds are committed to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition

from tests.adapters.pydantic_ai.scripted import refunding
from toolcrib.adapters.pydantic_ai import MESSAGES, MessageHistory, decode_response
from toolcrib.calls import Media
from toolcrib.errors import CommitError
from toolcrib.formats import Declaration, WireCall, WireResult, definitions
from toolcrib.rounds import ToolRoundPlan
from toolcrib.tools import ez_tool
from toolcrib.toolsets import ToolRequirement

HI = ModelRequest([UserPromptPart("Hi.")])


def asking(*calls: ToolCallPart, text: str = "") -> ModelResponse:
    return ModelResponse([*([TextPart(text)] if text else []), *calls])


def call(id: str, args: Any = '{"order": 7}', name: str = "refund") -> ToolCallPart:
    return ToolCallPart(name, args, id)


def result(id: str) -> ToolReturnPart:
    return ToolReturnPart("refund", "done", id)


async def test_a_round_is_committed_as_messages() -> None:
    ran: list[Any] = []
    response = ModelResponse(
        [ThinkingPart("hm", signature="s", provider_name="x"), call("a"), call("b", None, "nope")],
        provider_details={"k": 1},
    )
    history = MessageHistory([HI])

    round = decode_response([refunding(ran, requires_approval=False)], response, history=history)
    plan = await round.apply_hooks()
    await plan.commit(history, await plan.run_pending())

    assert history.messages[:2] == [HI, response]
    request = history.messages[2]
    assert isinstance(request, ModelRequest)
    first, second = request.parts
    assert isinstance(first, ToolReturnPart)
    assert isinstance(second, ToolReturnPart)
    assert (first.content, first.tool_call_id, first.outcome) == ("refunded 100 on 7", "a", "success")
    assert second.outcome == "failed"
    assert str(second.content).startswith("Rejected: UnknownTool")
    assert (ran, history.check()) == ([(7, 100)], [])


async def test_the_models_own_words_stay_as_they_came() -> None:
    async def more(call: Any) -> Any:
        call.input.order = 8
        return call

    ran: list[Any] = []
    history = MessageHistory([HI])
    response = asking(call("a", '{ "order":7 }'))

    plan = await decode_response([refunding(ran, requires_approval=False)], response).apply_hooks(more)
    await plan.commit(history, await plan.run_pending())

    assert (ran, history.messages[1]) == ([(8, 100)], response)


async def test_an_id_that_is_in_use_is_replaced() -> None:
    history = MessageHistory([HI, asking(call("a")), ModelRequest([result("a")])])

    round = decode_response([refunding([], requires_approval=False)], asking(call("a")), history=history)

    assert round.expect_one().id != "a"
    assert "in use" in round.problems[0]


async def test_a_history_that_is_not_valid_is_not_added_to() -> None:
    history = MessageHistory([HI, asking(call("a"))])
    plan = await decode_response([refunding([], requires_approval=False)], asking(call("b"))).apply_hooks()

    with pytest.raises(CommitError, match="has no result"):
        await plan.commit(history, await plan.run_pending())

    assert len(history.messages) == 2


async def test_a_round_that_waits_is_taken_up_from_its_json() -> None:
    ran: list[Any] = []
    plan = await decode_response([refunding(ran)], asking(call("a"))).apply_hooks()
    request, history = plan.suspended[0].request, MessageHistory([HI])

    with pytest.raises(ValueError, match="give `format=`"):
        await ToolRoundPlan.from_json([refunding(ran)], plan.to_json())
    plan = await ToolRoundPlan.from_json([refunding(ran)], plan.to_json(), format=MESSAGES)
    await plan.resolve([request.grant("ada")])
    await plan.commit(history, await plan.run_pending())

    assert (ran, history.check()) == ([(7, 100)], [])


async def test_an_agent_goes_on_from_a_committed_history() -> None:
    history = MessageHistory([HI])
    plan = await decode_response([refunding([], requires_approval=False)], asking(call("a"))).apply_hooks()
    await plan.commit(history, await plan.run_pending())

    done = await Agent(TestModel(custom_output_text="Fine.")).run("And?", message_history=history.messages)

    assert done.output == "Fine."
    assert done.all_messages()[:2] == history.messages[:2]
    assert MessageHistory(done.all_messages()).check() == []


async def test_a_file_goes_along_with_the_result() -> None:
    @ez_tool
    async def draw() -> list[Any]:
        return ["a dot", Media("image/png", b"\xff\xfe\x00"), Media("application/pdf", url="https://example.com/a.pdf")]

    history = MessageHistory([HI])
    plan = await decode_response([draw], asking(call("a", None, "draw"))).apply_hooks()
    await plan.commit(history, await plan.run_pending())

    [part] = history.messages[-1].parts
    assert isinstance(part, ToolReturnPart)
    text, image, document = part.content
    assert isinstance(image, BinaryContent)
    assert (text, image.data, document.url) == ("a dot", b"\xff\xfe\x00", "https://example.com/a.pdf")


# --- checking and mending

ODD: list[tuple[list[ModelMessage], str]] = [
    ([HI, asking(call("a"))], "missing"),
    ([HI, asking(call("a")), HI], "missing"),
    ([HI, ModelRequest([result("a")])], "orphan"),
    ([HI, asking(call("a")), ModelRequest([result("a"), result("a")])], "duplicate"),
    ([HI, asking(call("a")), ModelRequest([UserPromptPart("And?"), result("a")])], "misplaced"),
    ([HI, asking(call("a")), HI, ModelRequest([result("a")])], "misplaced"),
    ([HI, asking(call("a"), call("a")), ModelRequest([result("a"), result("a")])], "duplicate"),
]


@pytest.mark.parametrize(("messages", "kind"), ODD)
def test_what_is_wrong_is_found_and_mended(messages: list[ModelMessage], kind: str) -> None:
    history = MessageHistory([*messages])
    before = [part for message in messages for part in message.parts if not isinstance(part, ToolReturnPart)]

    found = [problem.kind for problem in history.check()]
    done = history.repair()

    assert found[0] == kind
    assert done
    assert history.check() == []
    after = [part for message in history.messages for part in message.parts if not isinstance(part, ToolReturnPart)]
    assert len(after) == len(before)


def test_a_valid_history_is_left_alone() -> None:
    messages: list[ModelMessage] = [
        HI,
        asking(call("a"), call("b")),
        ModelRequest([result("a")]),
        ModelRequest([ToolReturnPart("refund", {"k": 1}, "b"), UserPromptPart("And?")]),
        asking(text="Fine."),
    ]
    history = MessageHistory(messages)

    assert (history.check(), history.repair()) == ([], [])
    assert history.messages is messages


def test_only_what_is_wrong_is_changed() -> None:
    messages: list[ModelMessage] = [HI, asking(call("a")), HI, asking(text="Fine.")]
    history = MessageHistory([*messages])

    done = history.repair()

    assert "says that there was none" in done[0]
    kept = [message for message in history.messages if any(message is one for one in messages)]
    assert (len(kept), len(history.messages)) == (4, 5)


def test_what_the_provider_runs_itself_is_no_call_of_ours() -> None:
    shape = {
        "kind": "response",
        "parts": [
            {"part_kind": "builtin-tool-call", "tool_name": "web_search", "args": {}, "tool_call_id": "s"},
            {"part_kind": "builtin-tool-return", "tool_name": "web_search", "content": "x", "tool_call_id": "s"},
            {"part_kind": "text", "content": "Found."},
        ],
    }

    made = MESSAGES.parse(shape)

    assert (made.calls, made.text, MESSAGES.check([shape])) == ((), "Found.", [])


# --- the format


def test_a_cut_response_and_an_empty_one_say_so() -> None:
    cut = MESSAGES.gather([asking(text="Once"), ModelResponse([TextPart("Once upon")], finish_reason="length")])
    empty = MESSAGES.parse(ModelResponse([]))

    assert (cut.text, "cut" in cut.problems[0]) == ("Once upon", True)
    assert (empty.items, len(empty.problems)) == ((), 1)


def test_what_is_no_response_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="ModelResponse"):
        MESSAGES.parse("hello")
    with pytest.raises(TypeError, match="responses"):
        MESSAGES.gather(["hello"])


def test_texts_become_messages() -> None:
    items = [*MESSAGES.system("Be kind."), *MESSAGES.user("Hi."), *MESSAGES.assistant("Hello.")]
    history = MessageHistory()

    history.transcript.extend(items)

    assert [type(message).__name__ for message in history.messages] == ["ModelRequest", "ModelRequest", "ModelResponse"]


async def test_tools_are_defined_for_a_direct_request() -> None:
    tool = refunding([], requires_approval=False)
    made = MESSAGES.define(Declaration(tool.name, tool.description, tool.parameters))
    parameters = ModelRequestParameters(function_tools=[ToolDefinition(**made)])
    history = MessageHistory([HI])

    response = await model_request(TestModel(), history.messages, model_request_parameters=parameters)
    plan = await decode_response([tool], response, history=history).apply_hooks()
    await plan.commit(history, await plan.run_pending())

    assert history.check() == []
    assert definitions([tool], "raw")[0]["parameters"] == made["parameters_json_schema"]


@pytest.mark.parametrize(
    ("requirement", "choice"),
    [
        (ToolRequirement.optional(), "auto"),
        (ToolRequirement.at_least_one(), "required"),
        (ToolRequirement.specific("refund"), ["refund"]),
    ],
)
def test_a_requirement_is_a_setting(requirement: ToolRequirement, choice: Any) -> None:
    assert MESSAGES.tool_choice(requirement.kind, requirement.name) == choice


def test_an_answer_is_read_back() -> None:
    [item] = MESSAGES.answer([WireResult(WireCall("a", "refund", ""), "broken", is_error=True)])

    [read] = MESSAGES.results_of(item)

    assert (read.call.id, read.call.name, read.content, read.is_error) == ("a", "refund", "broken", True)
