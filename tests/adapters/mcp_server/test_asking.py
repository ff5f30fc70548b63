"""A tool asks the client that called it, in both generations: while the call waits, or between two requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from tests.adapters.mcp_server.clients import IN_MEMORY, OLD, Way, every_generation, every_way, text_of
from tests.virtual_time import in_virtual_time
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import Tool, ez_tool

_NEW = IN_MEMORY[1]
_KEY = b"k" * 32


class Seat(BaseModel):
    row: int
    side: Literal["aisle", "window"] = "aisle"


def seating(ran: list[str], **options: Any) -> Tool[..., Any]:
    """Return a tool that notes how often it runs, and asks for a seat."""

    @ez_tool(**options)
    async def reserve(ctx: RunContext[Any], name: str) -> str:
        """Reserve a seat."""
        ran.append(name)
        answer = await ctx.elicit(f"Which seat, {name}?", Seat)
        ran.append(answer.action)
        return f"{name}: {answer.data.row}{answer.data.side[0]}" if answer.data else answer.action

    return reserve


def filling(*answers: Any, shown: list[Any] | None = None) -> Any:
    left = list(answers)

    async def fill(context: Any, params: Any) -> types.ElicitResult:
        if shown is not None:
            shown.append(params)
        given = left.pop(0)
        return given if isinstance(given, types.ElicitResult) else types.ElicitResult(action="accept", content=given)

    return fill


async def call_once(client: Client, name: str, arguments: dict[str, Any], **more: Any) -> Any:
    """Return the reply to one request, also where it asks for input."""
    return await client.session.call_tool(name, arguments, allow_input_required=True, **more)


def accept(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


# --- both generations ------------------------------------------------------------------------------------------------


@every_way
async def test_a_form_is_filled_in_and_the_body_runs_once(way: Way) -> None:
    ran, shown = list[str](), list[Any]()
    server = build_server([seating(ran)])

    async with way(server, elicitation_callback=filling({"row": 3}, shown=shown)) as client:
        done = await client.call_tool("reserve", {"name": "ann"})

    assert text_of(done) == "ann: 3a"
    assert ran == ["ann", "accept"]
    assert shown[0].message == "Which seat, ann?"
    assert shown[0].requested_schema["properties"]["side"]["default"] == "aisle"


@every_generation
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_answer_may_be_none(way: Way, action: Any) -> None:
    server = build_server([seating([])])

    async with way(server, elicitation_callback=filling(types.ElicitResult(action=action))) as client:
        assert text_of(await client.call_tool("reserve", {"name": "ann"})) == action


@every_generation
async def test_an_answer_that_does_not_fit_is_an_error_that_names_the_field(way: Way) -> None:
    server = build_server([seating([])])

    async with way(server, elicitation_callback=filling({"row": "x" * 50}, {"row": "y"})) as client:
        done = await client.call_tool("reserve", {"name": "ann"})

    assert done.is_error
    assert "does not fit what `reserve` asked for: row" in text_of(done)


@every_generation
async def test_an_answer_approves_nothing(way: Way) -> None:
    ran, shown = list[str](), list[Any]()
    server = build_server([seating(ran, requires_approval=True)])

    async with way(server, elicitation_callback=filling({"decision": "approve"}, shown=shown)) as client:
        done = await client.call_tool("reserve", {"name": "ann"})

    assert done.structured_content is not None
    assert done.structured_content["status"] == "suspended"
    assert (ran, shown) == ([], [])


@every_generation
async def test_a_call_that_the_client_approved_goes_on_to_ask(way: Way) -> None:
    ran = list[str]()
    server = build_server([seating(ran, requires_approval=True)], ServerOptions(approve_by="elicit"))

    async with way(server, elicitation_callback=filling({"decision": "approve"}, {"row": 1})) as client:
        assert text_of(await client.call_tool("reserve", {"name": "ann"})) == "ann: 1a"

    assert ran == ["ann", "accept"]


@ez_tool
async def visit(ctx: RunContext[Any]) -> str:
    """Send the person to a page."""
    return (await ctx.elicit("Pay there", url="https://pay.example/1")).action


@every_generation
async def test_a_page_is_visited(way: Way) -> None:
    shown = list[Any]()

    async with way(
        build_server([visit]), elicitation_callback=filling(types.ElicitResult(action="accept"), shown=shown)
    ) as client:
        assert text_of(await client.call_tool("visit", {})) == "accept"

    assert shown[0].url == "https://pay.example/1"


@ez_tool
async def think(ctx: RunContext[Any], about: str) -> str:
    """Ask the client's model and its folders."""
    sampled, roots = await asyncio.gather(ctx.sample(about, max_tokens=7, system_prompt="Brief."), ctx.roots())
    return f"{sampled.text} in {[root.uri for root in roots]}"


async def model(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    assert (params.max_tokens, params.system_prompt) == (7, "Brief.")
    said = params.messages[0].content
    assert isinstance(said, types.TextContent)
    return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(text=f"so: {said.text}"))


async def folders(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///home/ann"})])


@every_way
async def test_the_clients_model_and_folders_are_asked_for_at_once(way: Way) -> None:
    async with way(build_server([think]), sampling_callback=model, list_roots_callback=folders) as client:
        done = await client.call_tool("think", {"about": "life"})

    assert text_of(done) == "so: life in ['file:///home/ann']"


@every_generation
async def test_the_host_may_let_nothing_through(way: Way) -> None:
    server = build_server([think], ServerOptions(ask_client=()))

    async with way(server, sampling_callback=model, list_roots_callback=folders) as client:
        done = await client.call_tool("think", {"about": "life"})

    assert done.is_error
    assert "the host does not let them through" in text_of(done)


async def test_a_client_that_lacks_what_a_tool_needs_gets_the_error_of_its_generation() -> None:
    server = build_server([think])

    async with Client(server, mode=OLD) as client:
        done = await client.call_tool("think", {"about": "life"})
    async with _NEW(server) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("think", {"about": "life"})

    assert "asks for a model, and there is none" in text_of(done)
    assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert refused.value.error.data == {"requiredCapabilities": {"sampling": {}, "roots": {}}}


@every_generation
async def test_what_a_model_said_is_a_strangers_for_the_policy(way: Way) -> None:
    paid = list[str]()

    @ez_tool(effect="none", source="trusted")
    async def payee(ctx: RunContext[Any]) -> str:
        """Say who is paid."""
        return (await ctx.sample("GB29NWBK60161331926819", max_tokens=7, system_prompt="Brief.")).text

    @ez_tool(effect="spend", source="trusted")
    async def pay(recipient: str) -> str:
        """Pay."""
        paid.append(recipient)
        return "paid"

    server = build_server([payee, pay], ServerOptions(run=lambda name: Run(features=[Provenance()])))

    async with way(server, sampling_callback=model) as client:
        await client.call_tool("payee", {})
        done = await client.call_tool("pay", {"recipient": "GB29NWBK60161331926819"})

    assert done.structured_content is not None
    assert done.structured_content["status"] == "suspended"
    assert paid == []


@every_generation
async def test_what_a_program_calls_asks_the_same_client(way: Way) -> None:
    server = build_server([seating([])], ServerOptions(code_mode=True, sandbox="unsafe_inline"))

    async with way(server, elicitation_callback=filling({"row": 5})) as client:
        done = await client.call_tool("run_python", {"code": "print(reserve('bo'))"})

    assert "bo: 5a" in text_of(done)


# --- log lines


@ez_tool
async def work(ctx: RunContext[Any]) -> str:
    """Log."""
    for level in ("debug", "info", "error"):
        await ctx.log(level, {"at": level})
    return "done"


async def test_each_session_hears_lines_of_its_level() -> None:
    server, heard = build_server([work]), list[tuple[str, Any]]()

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append((params.level, params.data))

    async with Client(server, mode=OLD, logging_callback=hear) as client, Client(server, mode=OLD) as other:
        await client.call_tool("work", {})
        await client.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level="error")), types.EmptyResult
        )
        await other.call_tool("work", {})
        await client.call_tool("work", {})

    assert [level for level, _ in heard] == ["info", "error", "error"]
    assert heard[0][1] == {"at": "info"}


async def test_a_newer_client_hears_the_lines_that_its_request_asks_for() -> None:
    heard = list[str]()

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.level)

    async with _NEW(build_server([work]), logging_callback=hear) as client:
        await client.call_tool("work", {})
        await client.call_tool("work", {}, meta={"io.modelcontextprotocol/logLevel": "error"})

    assert heard == ["error"]


async def test_the_host_may_keep_its_log_to_itself() -> None:
    heard = list[Any]()

    async def hear(params: Any) -> None:
        heard.append(params)

    server = build_server([work], ServerOptions(ask_client=("elicit",)))
    async with Client(server, mode=OLD, logging_callback=hear) as client:
        await client.call_tool("work", {})

    assert heard == []


# --- the stateless generation: between two requests -----------------------------------------------------------------


async def _unused(context: Any, params: Any) -> types.ElicitResult:
    raise AssertionError("the test answers by itself")


async def test_wrong_keys_and_kinds_are_asked_again_and_extra_ones_ignored() -> None:
    ran = list[str]()

    async with _NEW(build_server([seating(ran)]), elicitation_callback=_unused) as client:
        first = await call_once(client, "reserve", {"name": "ann"})
        roots = types.ListRootsResult(roots=[])
        wrong = {"input_responses": {"other": accept(row=1), "elicit_1": roots}, "request_state": first.request_state}
        again = await call_once(client, "reserve", {"name": "ann"}, **wrong)
        right = {"input_responses": {"x": roots, "elicit_1": accept(row=2)}, "request_state": again.request_state}
        done = await call_once(client, "reserve", {"name": "ann"}, **right)

    assert list(first.input_requests) == list(again.input_requests) == ["elicit_1"]
    assert text_of(done) == "ann: 2a"
    assert ran == ["ann", "accept"]


async def test_of_several_questions_those_without_an_answer_are_asked_again() -> None:
    async with _NEW(build_server([think]), sampling_callback=model, list_roots_callback=folders) as client:
        first = await call_once(client, "think", {"about": "x"})
        keys = {request.method: key for key, request in first.input_requests.items()}
        some = {keys["roots/list"]: types.ListRootsResult(roots=[])}
        again = await call_once(
            client, "think", {"about": "x"}, input_responses=some, request_state=first.request_state
        )

    assert list(again.input_requests) == [keys["sampling/createMessage"]]


@ez_tool
async def plan(ctx: RunContext[Any]) -> str:
    """Ask a person and the client's model at once."""
    seat, sampled = await asyncio.gather(ctx.elicit("Which seat?", Seat), ctx.sample("Say why"))
    return f"{seat.data.row}: {sampled.text}" if seat.data else seat.action


async def test_what_the_client_cannot_answer_waits_in_the_store_and_holds_up_no_other_question() -> None:
    store = MemoryApprovalStore()

    async with _NEW(build_server([plan], ServerOptions(approvals=store)), sampling_callback=model) as client:
        first = await call_once(client, "plan", {})
        [entry] = await store.list()
        await store.answer(entry.request.grant("bo (console)", override_args={"row": 3, "side": "aisle"}))
        said = types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(text="near"))
        given = {"input_responses": {"sample_1": said}, "request_state": first.request_state}
        done = await call_once(client, "plan", {}, **given)

    assert list(first.input_requests) == ["sample_1"]
    assert text_of(done) == "3: near"


async def test_a_state_is_used_once_and_says_that_the_call_is_in_doubt() -> None:
    ran = list[str]()

    async with _NEW(build_server([seating(ran)]), elicitation_callback=_unused) as client:
        first = await call_once(client, "reserve", {"name": "ann"})
        answer: dict[str, Any] = {
            "input_responses": {"elicit_1": accept(row=1)},
            "request_state": first.request_state,
        }
        await call_once(client, "reserve", {"name": "ann"}, **answer)
        with pytest.raises(MCPError, match="in doubt: it may have taken effect") as refused:
            await call_once(client, "reserve", {"name": "ann"}, **answer)

    assert refused.value.error.data == {"reason": "in_doubt", "tool": "reserve"}
    assert ran == ["ann", "accept"]


async def test_another_process_says_that_the_call_is_in_doubt() -> None:
    options = ServerOptions(keys=[_KEY], principal="ann")
    async with _NEW(build_server([seating([])], options), elicitation_callback=_unused) as client:
        first = await call_once(client, "reserve", {"name": "ann"})
    ran = list[str]()

    async with _NEW(build_server([seating(ran)], options), elicitation_callback=_unused) as client:
        with pytest.raises(MCPError, match="the process that ran it has ended"):
            await call_once(
                client,
                "reserve",
                {"name": "ann"},
                input_responses={"elicit_1": accept(row=1)},
                request_state=first.request_state,
            )

    assert ran == []


async def test_a_state_without_its_process_says_so_where_it_cannot_be_read() -> None:
    async with _NEW(build_server([seating([])]), elicitation_callback=_unused) as client:
        first = await call_once(client, "reserve", {"name": "ann"})

    async with _NEW(build_server([seating([])]), elicitation_callback=_unused) as client:
        with pytest.raises(MCPError, match="it may have taken effect"):
            await call_once(client, "reserve", {"name": "ann"}, request_state=first.request_state)


async def test_another_principals_state_is_refused() -> None:
    ran = list[str]()
    server = build_server([seating(ran)])

    async with _NEW(server, elicitation_callback=_unused) as client:
        with acting_as("ann"):
            first = await call_once(client, "reserve", {"name": "ann"})
    async with _NEW(server, elicitation_callback=_unused) as client:
        with pytest.raises(MCPError, match="requestState"):
            await call_once(
                client,
                "reserve",
                {"name": "ann"},
                input_responses={"elicit_1": accept(row=1)},
                request_state=first.request_state,
            )

    assert "accept" not in ran


async def test_calls_that_wait_for_their_client_are_limited_for_each_principal() -> None:
    ran = list[str]()
    server = build_server([seating(ran)], ServerOptions(max_asking=2))

    async with _NEW(server, elicitation_callback=_unused) as client:
        replies = [await call_once(client, "reserve", {"name": str(number)}) for number in range(5)]

    asked = [reply for reply in replies if isinstance(reply, types.InputRequiredResult)]
    refused = [reply for reply in replies if isinstance(reply, types.CallToolResult)]
    assert (len(asked), len(refused)) == (2, 3)
    assert "has 2 calls without an answer" in text_of(refused[0])


@in_virtual_time
async def test_a_call_whose_client_does_not_come_back_gives_way_to_a_later_one() -> None:
    ran = list[str]()
    server = build_server([seating(ran)], ServerOptions(max_asking=1, state_seconds=10.0))

    async with _NEW(server, elicitation_callback=_unused) as client:
        left = await call_once(client, "reserve", {"name": "ann"})
        await asyncio.sleep(1.1)
        asked = await call_once(client, "reserve", {"name": "ben"})
        given = {"input_responses": {"elicit_1": accept(row=1)}, "request_state": asked.request_state}
        done = await call_once(client, "reserve", {"name": "ben"}, **given)
        with pytest.raises(MCPError, match="in doubt"):
            await call_once(client, "reserve", {"name": "ann"}, **{**given, "request_state": left.request_state})

    assert text_of(done) == "ben: 1a"
    assert ran == ["ann", "ben", "accept"]


@in_virtual_time
async def test_a_call_that_is_not_answered_is_stopped_and_its_record_says_so() -> None:
    watch, stopped = RecordingSink(), asyncio.Event()

    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        try:
            await ctx.elicit("Well?", int)
        finally:
            stopped.set()
        return "answered"

    server = build_server([ask], ServerOptions(state_seconds=0.05, sinks=(watch,)))

    async with _NEW(server, elicitation_callback=_unused) as client:
        await call_once(client, "ask", {})
        await stopped.wait()

    assert [record.outcome["kind"] for record in watch.records] == ["cancelled"]


async def test_calls_that_wait_are_stopped_when_the_server_ends() -> None:
    stopped = list[str]()

    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        try:
            await ctx.elicit("Well?", int)
        finally:
            stopped.append("stopped")
        return "answered"

    async with _NEW(build_server([ask]), elicitation_callback=_unused) as client:
        await call_once(client, "ask", {})
        assert stopped == []

    assert stopped == ["stopped"]


async def test_the_state_shows_a_client_nothing() -> None:
    async with _NEW(build_server([seating([])]), elicitation_callback=_unused) as client:
        first = await call_once(client, "reserve", {"name": "ann"})

    assert "asking" not in first.request_state
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(first.request_state)
