"""What waits for the client and is no call of a tool is handed to the host, who answers it; it is never "finished"."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolSearchCallPart

from tests.formats.replies import sdk_accepts
from tests.rounds.endings import MODES, RULES, begins
from toolcrib.errors import CommitError, RoundError
from toolcrib.rounds import (
    Continue,
    Finished,
    NeedsTools,
    Session,
    Stopped,
    ToolRound,
    ToolRoundPlan,
    Transcript,
    Unhandled,
    decode,
)
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import Tool, ez_tool

SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="}
CALLER = {"type": "program", "caller_id": "prog_1"}
ITEMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # an item of a response, and what the host says to it
    "shell_call": (
        {"id": "s", "call_id": "c", "action": {"commands": ["ls"]}, "status": "completed", "caller": CALLER},
        {"output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    ),
    "local_shell_call": (
        {"id": "s", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}, "status": "completed"},
        {"output": "a.txt"},
    ),
    "apply_patch_call": (
        {"id": "s", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"},
        {"status": "completed"},
    ),
    "computer_call": (
        {
            "id": "s",
            "call_id": "c",
            "pending_safety_checks": [],
            "action": {"type": "screenshot"},
            "status": "completed",
        },
        {"output": SHOT},
    ),
    "tool_search_call": (
        {"id": "s", "call_id": "c", "execution": "client", "arguments": {"query": "x"}, "status": "completed"},
        {"tools": []},
    ),
    "mcp_approval_request": (
        {"id": "c", "arguments": "{}", "name": "drop_db", "server_label": "db"},
        {"approve": True},
    ),
    "custom_tool_call": ({"id": "s", "call_id": "c", "name": "sql", "input": "SELECT 1"}, {"output": "1"}),
    "function_call": (
        {"id": "s", "call_id": "c", "name": "get_weather", "namespace": "crm", "arguments": '{"city": "Oslo"}'},
        {"output": "rain"},
    ),
}
each_item = pytest.mark.parametrize("kind", ITEMS)
each_mode = pytest.mark.parametrize("mode", MODES)


def weather(ran: list[str]) -> Tool[..., Any]:
    @ez_tool
    def get_weather(city: str) -> str:
        """Say how the weather is."""
        ran.append(city)
        return f"sunny in {city}"

    return get_weather


def response(*output: dict[str, Any], mode: str = "whole", status: str = "completed") -> Any:
    made = {"id": "r", "object": "response", "status": status, "output": list(output)}
    if mode == "whole":
        return made
    places = list(enumerate(output))
    begun = [{"type": "response.output_item.added", "output_index": at, "item": item} for at, item in places]
    done = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in places]
    return [*begun, *done, {"type": f"response.{status}", "response": made}]


def waiting(kind: str) -> dict[str, Any]:
    return {"type": kind, **ITEMS[kind][0]}


@each_mode
@each_item
async def test_the_host_answers_what_waits_for_the_client(kind: str, mode: str) -> None:
    ran: list[str] = []
    model = ScriptedModel(response(waiting(kind), mode=mode), "done")
    session = Session(model, tools=[weather(ran)], format="openai_responses").say("Go.")

    plan = await session.run()
    assert isinstance(plan, ToolRoundPlan)
    [one] = plan.unhandled
    await plan.commit(session, [one.answer(**ITEMS[kind][1])])
    finished = await session.run()

    assert (one.kind, dict(one.item), one.is_known, ran) == (kind, waiting(kind), True, [])
    assert isinstance(finished, Finished)
    assert (finished.result, session.transcript.check()) == ("done", [])
    sdk_accepts("openai_responses", [item for item in session.transcript if "type" in item])


@each_item
async def test_what_the_host_does_not_do_is_refused_in_the_providers_way(kind: str) -> None:
    transcript = begins("openai_responses")

    round = decode([weather([])], response(waiting(kind)))
    await round.commit(transcript, [one.refuse("not here") for one in round.unhandled])

    assert Transcript(transcript, "openai_responses").check() == []
    sdk_accepts("openai_responses", transcript[1:])


@each_item
async def test_nothing_is_committed_without_an_answer(kind: str) -> None:
    transcript = begins("openai_responses")
    round = decode([weather([])], response(waiting(kind)))

    with pytest.raises(CommitError, match=f"`{kind}` .* waits for an answer"):
        await round.commit(transcript)

    assert len(transcript) == 1


@each_item
def test_the_check_knows_what_waits(kind: str) -> None:
    transcript = Transcript([*begins("openai_responses"), waiting(kind)], "openai_responses")

    found = transcript.check()
    transcript.repair()

    assert [problem.kind for problem in found] == ["missing"]
    assert transcript.check() == []
    sdk_accepts("openai_responses", transcript[1:])


@each_mode
async def test_what_is_cut_is_not_for_the_host_to_do(mode: str) -> None:
    transcript = begins("openai_responses")

    round = decode([], response(waiting("shell_call"), mode=mode, status="incomplete"))
    added = await round.commit(transcript)

    assert round.unhandled == []
    assert "cut before its end" in str(added)
    assert Transcript(transcript, "openai_responses").check() == []


WITHOUT_INPUT = {"id": "c", "type": "custom", "custom": {"name": "sql"}}
OPEN_BLOCK = {"type": "tool_use", "id": "toolu_1", "name": "click", "toolset_name": "browser", "input": {}}
DOUBTED: dict[str, tuple[Any, Any]] = {  # a format, and a reply that was finished with a call that is not whole
    **{
        f"{kind} {status}": ("openai_responses", response({**waiting(kind), "status": status}))
        for kind in ("apply_patch_call", "tool_search_call", "custom_tool_call", "function_call")
        for status in ("in_progress", "incomplete")
    },
    "custom": (
        "openai",
        {"choices": [{"finish_reason": "tool_calls", "message": {"content": None, "tool_calls": [WITHOUT_INPUT]}}]},
    ),
    "toolset": (
        "anthropic",
        [
            {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": OPEN_BLOCK},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a'}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ],
    ),
}


@pytest.mark.parametrize("name", DOUBTED)
async def test_what_waits_and_did_not_come_whole_is_refused_and_the_model_goes_on(name: str) -> None:
    format, reply = DOUBTED[name]
    session = Session(ScriptedModel(reply, "done"), tools=[weather([])], format=format).say("Go.")

    step = await session.step()
    assert isinstance(step, NeedsTools)
    with pytest.raises(RoundError, match="waits for an answer"):
        step.round.expect_at_most_one()
    await step.round.commit(session)
    made = await session.run()

    assert step.round.unhandled == []
    assert isinstance(made, Finished)
    assert (made.result, session.transcript.check()) == ("done", [])


@pytest.mark.parametrize("kind", ["shell_call", "local_shell_call", "computer_call"])
@pytest.mark.parametrize("status", ["in_progress", "incomplete"])
async def test_an_action_that_is_there_is_whole(kind: str, status: str) -> None:
    item = {**waiting(kind), "status": status}

    [one] = decode([], response(item)).unhandled

    assert one.item == item


async def test_what_the_provider_answers_itself_waits_for_nobody() -> None:
    output = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": [], "status": "completed"}
    search = {"type": "tool_search_call", "id": "t", "execution": "server", "arguments": {}, "status": "completed"}
    found = {"type": "tool_search_output", "id": "u", "execution": "server", "tools": [], "status": "completed"}
    said = wire_reply("openai_responses", text="done")["output"]
    session = Session(
        ScriptedModel(response(waiting("shell_call"), output, search, found, *said)), format="openai_responses"
    )

    made = await session.say("Go.").run()

    assert isinstance(made, Finished)
    assert (made.result, session.transcript.check()) == ("done", [])


async def test_calls_of_tools_and_others_are_answered_in_their_order() -> None:
    ran: list[str] = []
    call = wire_reply("openai_responses", [])["output"]
    plain = {"type": "function_call", "call_id": "d", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
    plan = await decode([weather(ran)], response(waiting("shell_call"), plain, *call)).apply_hooks()

    transcript = begins("openai_responses")
    answers = [*await plan.run_pending(), *(one.answer(**ITEMS["shell_call"][1]) for one in plan.unhandled)]
    added = await plan.commit(transcript, answers)

    assert ran == ["Oslo"]
    assert [item["type"] for item in added[2:]] == ["shell_call_output", "function_call_output"]
    assert added[2]["caller"] == CALLER


async def test_a_call_in_a_namespace_is_answered_there() -> None:
    round = decode([weather([])], response(waiting("function_call")))

    added = await round.commit(begins("openai_responses"), [one.answer("rain") for one in round.unhandled])

    assert added[1] == {"type": "function_call_output", "call_id": "c", "namespace": "crm", "output": "rain"}


@pytest.mark.parametrize(("kind", "missing"), [("computer_call", "output"), ("mcp_approval_request", "approve")])
def test_an_answer_without_what_it_has_to_say_is_an_error(kind: str, missing: str) -> None:
    [one] = decode([], response(waiting(kind))).unhandled

    with pytest.raises(RoundError, match=f"takes {missing}=..."):
        one.answer("yes")
    with pytest.raises(RoundError, match="waits for the answer"):
        one.leave()


async def test_a_text_that_no_answer_could_carry_is_an_error() -> None:
    known, strange = decode([], response(waiting("shell_call"), {"type": "a_new_call", "id": "n"})).unhandled

    with pytest.raises(RoundError, match=r"`a_new_call` .* takes the fields of its whole answer"):
        strange.answer("done")
    with pytest.raises(RoundError, match="takes the fields of its whole answer"):
        strange.answer("done", type="a_new_output")
    with pytest.raises(RoundError, match=r"`shell_call` \(c\) takes a text, or fields"):
        known.answer("done", output=[])


def test_a_round_with_something_unhandled_is_not_the_one_call_that_was_expected() -> None:
    round = decode([], response(waiting("shell_call")))

    with pytest.raises(RoundError, match="`shell_call` waits for an answer"):
        round.expect_at_most_one()


async def test_what_is_unhandled_waits_in_another_process() -> None:
    saved = decode([], response(waiting("shell_call"), {"type": "a_new_call", "id": "n"})).to_json()

    round = await ToolRound.from_json([], saved)

    assert [one.kind for one in round.unhandled] == ["shell_call", "a_new_call"]
    assert isinstance(round.unhandled[0], Unhandled)


# --- other formats


@each_mode
async def test_a_tool_of_a_toolset_of_anthropics_is_answered_in_that_toolset(mode: str) -> None:
    ran: list[str] = []
    block = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "get_weather",
        "input": {"city": "Oslo"},
        "toolset_name": "browser",
    }
    reply: Any = {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [block]}
    if mode == "streamed":
        reply = [
            {"type": "message_start", "message": {**reply, "stop_reason": None, "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
    transcript = begins("anthropic")

    round = decode([weather(ran)], reply, format="anthropic")
    [one] = round.unhandled
    await round.commit(transcript, [one.answer("clicked")])

    result = {"type": "tool_result", "tool_use_id": "toolu_1", "toolset_name": "browser", "content": "clicked"}
    assert (one.name, one.item["toolset_name"], ran) == ("get_weather", "browser", [])
    assert transcript[1]["content"] == [block]
    assert transcript[2]["content"] == [result]
    sdk_accepts("anthropic", transcript)


@each_mode
async def test_a_custom_call_of_a_chat_is_the_hosts(mode: str) -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    reply: Any = {"choices": [{**choice, "message": {"role": "assistant", "tool_calls": [call]}}]}
    if mode == "streamed":
        reply = [{"choices": [{**choice, "delta": {"tool_calls": [{**call, "index": 0}]}}]}]
    transcript = begins("openai")

    round = decode([weather([])], reply, format="openai")
    await round.commit(transcript, [one.answer("1") for one in round.unhandled])

    assert transcript[-1] == {"role": "tool", "tool_call_id": "c1", "content": "1"}
    assert transcript[1]["tool_calls"] == [call]
    sdk_accepts("openai", transcript)


async def test_a_call_that_is_their_agents_is_not_taken_for_a_tool() -> None:
    response = ModelResponse([ToolSearchCallPart(args={"queries": ["x"]}, tool_call_id="a")], finish_reason="tool_call")

    round = decode([weather([])], response, format=RULES["pydantic_ai"])

    assert [(one.kind, one.name) for one in round.unhandled] == [("tool-search", "search_tools")]


@each_mode
async def test_a_call_from_before_there_were_tools_is_a_call(mode: str) -> None:
    ran: list[str] = []
    said = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    choice = {"index": 0, "finish_reason": "function_call"}
    reply: Any = {"choices": [{**choice, "message": {"role": "assistant", "content": None, "function_call": said}}]}
    if mode == "streamed":
        first, rest = {"name": "get_weather", "arguments": '{"city'}, {"arguments": '": "Oslo"}'}
        reply = [{"choices": [{"index": 0, "delta": {"function_call": one}}]} for one in (first, rest)]
        reply.append({"choices": [{**choice, "delta": {}}]})
    session = Session(ScriptedModel(reply, "done"), tools=[weather(ran)]).say("Go.")

    made = await session.run()

    assert isinstance(made, Finished)
    assert (ran, session.transcript.check()) == (["Oslo"], [])
    sdk_accepts("openai", list(session.transcript))


def test_the_check_pairs_calls_and_results_from_before_there_were_tools() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "get_weather", "arguments": "{}"}}
    result = {"role": "function", "name": "get_weather", "content": "sunny"}

    good, bad = Transcript([call, result]), Transcript([call])
    found = bad.check()
    bad.repair()

    assert (good.check(), [problem.kind for problem in found], bad.check()) == ([], ["missing"], [])


# --- what no list has

STRANGE: dict[str, Any] = {
    "openai_responses": response({"type": "a_new_call", "id": "n"}),
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "stop_reason": "tool_use",
        "content": [{"type": "a_new_call"}],
    },
    "gemini": {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"a_new_call": {"x": 1}}]}}]},
    "mistral": {"choices": [{"finish_reason": "stop", "message": {"content": [{"type": "a_new_call"}]}}]},
    "bedrock": {"output": {"message": {"content": [{"a_new_call": {"x": 1}}]}}, "stopReason": "end_turn"},
    "cohere": {"finish_reason": "COMPLETE", "message": {"content": [{"type": "a_new_call"}]}},
    "gemini_interactions": {"object": "interaction", "status": "requires_action", "steps": [{"type": "a_new_call"}]},
}


@pytest.mark.parametrize("format", STRANGE)
async def test_what_is_not_known_is_not_finished(format: Any) -> None:
    session = Session(ScriptedModel(STRANGE[format], STRANGE[format], "done"), format=format).say("Go.")

    made = await session.step()
    assert isinstance(made, NeedsTools)
    [one] = made.round.unhandled
    await made.round.commit(session, [one.leave()])
    plan = await session.run()
    assert isinstance(plan, ToolRoundPlan)
    added = await plan.commit(session, [one.answer(type="an_answer") for one in plan.unhandled])

    assert (one.kind, one.is_known) == ("a_new_call", False)
    assert "an_answer" in str(added[-1])
    with pytest.raises(RoundError, match="is not known"):
        one.refuse("no")


# --- replies without calls


@each_mode
async def test_a_pause_is_gone_on_from(mode: str) -> None:
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    paused: Any = {"type": "message", "role": "assistant", "stop_reason": "pause_turn", "content": [block]}
    if mode == "streamed":
        paused = [
            {"type": "message_start", "message": {**paused, "stop_reason": None}},
            {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}},
            {"type": "message_stop"},
        ]
    session = Session(ScriptedModel(paused, paused, "done"), format="anthropic").say("Go.")

    first = await session.step()
    last = await session.run()

    assert isinstance(first, Continue)
    assert isinstance(last, Finished)
    assert [item["role"] for item in session.transcript] == ["user", "assistant", "assistant", "assistant"]
    assert session.transcript[1]["content"] == [block]


async def test_a_model_that_pauses_for_ever_is_stopped() -> None:
    paused = {
        "type": "message",
        "role": "assistant",
        "stop_reason": "pause_turn",
        "content": [{"type": "text", "text": "x"}],
    }

    with pytest.raises(RoundError, match="to go on, after 2 rounds"):
        await Session(ScriptedModel(paused, paused, paused), format="anthropic").say("Go.").run(max_rounds=2)


ENDED: list[tuple[Any, dict[str, Any], str]] = [
    ("openai", {"choices": [{"finish_reason": "length", "message": {"content": "Once"}}]}, "length"),
    ("openai", {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "No."}}]}, "refusal"),
    ("openai", {"choices": [{"finish_reason": "tool_calls", "message": {"content": None}}]}, "malformed"),
    ("openai", {"choices": [{"finish_reason": "new", "message": {"content": "x"}}]}, "unknown"),
    ("openai", [{"choices": [{"delta": {"content": "Once"}}]}], "cut"),
    ("mistral", {"choices": [{"finish_reason": "error", "message": {"content": ""}}]}, "error"),
    ("openai_responses", response(status="failed"), "error"),
    ("openai_responses", response(status="queued"), "cut"),
    (
        "anthropic",
        {"content": [{"type": "text", "text": "par"}], "stop_reason": "model_context_window_exceeded"},
        "length",
    ),
    ("anthropic", {"content": [], "stop_reason": "refusal"}, "refusal"),
    ("bedrock", {"output": {"message": {"content": []}}, "stopReason": "malformed_tool_use"}, "malformed"),
    ("bedrock", [{"throttlingException": {"message": "busy"}}], "error"),
    ("bedrock", [{"contentBlockDelta": {"delta": {"text": "Once"}, "contentBlockIndex": 0}}], "cut"),
    ("ollama", {"message": {"content": "Once"}, "done": True, "done_reason": "length"}, "length"),
    ("cohere", {"message": {"content": [{"type": "text", "text": "Once"}]}, "finish_reason": "MAX_TOKENS"}, "length"),
    ("gemini_interactions", {"status": "incomplete", "steps": []}, "length"),
    (
        "gemini_interactions",
        {"status": "completed", "steps": [{"type": "model_output", "error": {"code": 9}}]},
        "error",
    ),
    ("gemini_interactions", {"status": "completed", "steps": [{"type": "user_input", "content": []}]}, "malformed"),
    ("gemini_interactions", [{"event_type": "step.start", "index": 0, "step": {"type": "thought"}}], "cut"),
    ("gemini_interactions", [{"event_type": "interaction.status_update", "status": "failed"}], "error"),
    ("gemini_interactions", [{"event_type": "error", "error": {"code": "busy", "message": "Busy."}}], "error"),
    ("cohere", {"message": "busy", "error_type": "OVERLOADED"}, "error"),
    ("cohere", [{"type": "content-delta", "delta": {"message": {"content": {"text": "Once"}}}}], "cut"),
    ("cohere", [{"type": "message-end", "delta": {"error": "busy", "finish_reason": "ERROR"}}], "error"),
    ("ollama", [{"message": {"content": "Once"}, "done": False}], "cut"),
    ("ollama", [{"message": {"content": "Once"}, "done": False}, {"error": "out of memory"}], "error"),
    ("gemini", {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}, "malformed"),
    ("gemini", {"candidates": [{"content": {}, "finishReason": "SAFETY"}]}, "content_filter"),
    ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}, "candidates": []}, "content_filter"),
]


@pytest.mark.parametrize(("format", "reply", "reason"), ENDED)
async def test_a_reply_that_ended_without_an_answer_is_not_finished(format: Any, reply: Any, reason: str) -> None:
    session = Session(ScriptedModel(reply, "done"), format=format).say("Go.")
    before = list(session.transcript)

    stopped = await session.run()
    finished = await session.run()

    assert isinstance(stopped, Stopped)
    assert (stopped.reason, session.transcript[:-1]) == (reason, before)
    assert stopped.problems
    assert isinstance(finished, Finished)


async def test_what_came_of_an_answer_can_be_kept() -> None:
    reply = {"choices": [{"finish_reason": "length", "message": {"content": "Once upon"}}]}
    session = Session(ScriptedModel(reply)).say("Tell.")

    made = await session.step()
    assert isinstance(made, Stopped)
    await made.commit()

    assert session.transcript[-1] == {"role": "assistant", "content": "Once upon"}
