"""Calls of programs that a model writes in its provider's own sandbox: read, gated and answered like any other."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.responses import Response
from pydantic import TypeAdapter

from tests.formats.replies import sdk_accepts
from toolcrib.calls import Reject, RunNormally
from toolcrib.formats import PROVIDERS, ProviderOptions
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.rounds import ChatRequest, NeedsTools, Session, ToolRound, Transcript, WireFormat, decode
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

FORMATS: tuple[WireFormat, ...] = ("anthropic", "openai_responses")
BOTH = ProviderOptions(allowed_callers=("direct", "programmatic", "code_execution_20260120"))
PROGRAMS = ProviderOptions(allowed_callers=("programmatic", "code_execution_20260120"))
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
each_format = pytest.mark.parametrize("format", FORMATS)


def tools(ran: list[str], provider: ProviderOptions | None = BOTH, **options: Any) -> Toolset:
    kept = {} if provider is None else {"provider": provider}

    @ez_tool(**kept, **options)
    async def find(city: str) -> str:
        """Find a city."""
        ran.append(city)
        return f"{city} is there"

    return Toolset([find])


def reply(format: WireFormat, *, direct: bool = False, version: str = "20260120") -> Any:
    """Return what a provider's SDK returns when a program calls `find`, or the model itself."""
    return _message(direct, version) if format == "anthropic" else _response(direct)


def _message(direct: bool, version: str) -> Message:
    server = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "code_execution",
        "input": {"code": "find('Oslo')"},
    }
    caller = {"type": "direct"} if direct else {"type": f"code_execution_{version}", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"city": "Oslo"}, "caller": caller}
    return Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": [call] if direct else [server, call],
            "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )


def _response(direct: bool) -> Response:
    program = {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "find('Oslo')", "fingerprint": "f"}
    caller = {"type": "direct"} if direct else {"type": "program", "caller_id": "call_p"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "status": "completed"}
    return Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt",
            "status": "completed",
            "output": [*([] if direct else [program]), {**call, "arguments": '{"city": "Oslo"}', "caller": caller}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )


@each_format
async def test_a_programs_call_runs_and_is_answered_by_results_alone(format: WireFormat) -> None:
    ran: list[str] = []
    transcript = Transcript(PROVIDERS[format].user("Go."), format)
    round = decode(tools(ran), reply(format), format=format, transcript=transcript)

    plan = await round.apply_hooks()
    await plan.commit(transcript, await plan.run_pending())

    assert ran == ["Oslo"]
    assert [call.caller for call in round.tool_calls] == [
        {"anthropic": "code_execution_20260120"}.get(format, "programmatic")
    ]
    [answer] = list(transcript)[-1:]
    if format == "anthropic":
        assert [block["type"] for block in answer["content"]] == ["tool_result"]
    else:
        assert answer["caller"] == {"type": "program", "caller_id": "call_p"}
    sdk_accepts(format, list(transcript))
    assert transcript.check() == []


@each_format
async def test_hooks_approval_limits_and_the_record_hold_for_a_programs_call(format: WireFormat) -> None:
    ran: list[str] = []
    sink = ListSink()
    refusing = HookSet()

    @refusing.on("find")
    async def decide(call: Any, given: Any) -> Any:
        return Reject("not this one") if given.city == "Oslo" else RunNormally(given)

    refused = await decode(tools(ran), reply(format), format=format).apply_hooks(refusing)
    asked = await decode(tools(ran, requires_approval=True), reply(format), format=format).apply_hooks()
    spent = await decode(tools(ran), reply(format), format=format, run=Run(limits=CallLimits(total=0))).apply_hooks()
    recorded = await decode(Pipeline(tools([]), sinks=[sink]), reply(format), format=format).apply_hooks()
    await recorded.commit([], await recorded.run_pending())

    assert [one.reason for one in refused.rejected] == ["not this one"]
    assert [one.call.name for one in asked.suspended] == ["find"]
    assert [one.source for one in spent.rejected] == ["limit"]
    assert [record.tool for record in sink.records] == ["find"]
    assert ran == []


@each_format
@pytest.mark.parametrize("provider", [None, ProviderOptions(allowed_callers=("direct",))])
async def test_a_program_that_is_not_allowed_is_refused_in_words(
    format: WireFormat, provider: ProviderOptions | None
) -> None:
    ran: list[str] = []
    transcript = Transcript(PROVIDERS[format].user("Go."), format)
    round = decode(tools(ran, provider), reply(format), format=format, transcript=transcript)

    await round.commit(transcript)

    assert ran == []
    assert not round.tool_calls
    assert "no program may call it, only the model itself" in str(list(transcript)[-1])
    assert [issue.metadata.name for issue in round.recoverable_issues] == ["find"]


@each_format
async def test_the_model_may_not_call_what_is_for_programs_alone(format: WireFormat) -> None:
    ran: list[str] = []
    round = decode(tools(ran, PROGRAMS), reply(format, direct=True), format=format)

    plan = await round.apply_hooks()

    assert await plan.run_pending() == []
    assert "only a program in the provider's sandbox may call it" in round.recoverable_issues[0].reason
    assert ran == []


async def test_the_versions_of_a_provider_count_as_one_caller() -> None:
    round = decode(tools([]), reply("anthropic", version="20250825"))

    assert [call.caller for call in round.tool_calls] == ["code_execution_20250825"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_container_is_named_for_the_next_request(streamed: bool) -> None:
    message = reply("anthropic")
    round = decode(tools([]), _events(message) if streamed else message)

    again = await ToolRound.from_json(tools([]), round.to_json())

    assert round.container == again.container == "container_1"


async def test_a_session_goes_on_in_the_container() -> None:
    asked: list[ChatRequest] = []

    class Model:
        async def reply(self, request: ChatRequest) -> Any:
            asked.append(request)
            return reply("anthropic")

    session = Session(Model(), format="anthropic", tools=tools([]))
    made = await session.say("Go.").step()
    assert isinstance(made, NeedsTools)
    plan = await made.round.apply_hooks()
    await plan.commit(session, await plan.run_pending())
    copied, loaded = session.copy(), await Session.from_json(Model(), session.to_json(), tools=tools([]))

    for one in (session, copied, loaded):
        await one.step()

    assert [request.container for request in asked] == ["", *["container_1"] * 3]


def _events(message: Message) -> list[Any]:
    whole = message.model_dump(mode="json", exclude_none=True)
    container = whole.pop("container")
    begun = {**whole, "content": [], "stop_reason": None}
    events: list[Any] = [{"type": "message_start", "message": begun}]
    for at, block in enumerate(whole["content"]):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    delta = {"stop_reason": "tool_use", "stop_sequence": None, "container": container}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}})
    return [EVENT.validate_python(event) for event in [*events, {"type": "message_stop"}]]
