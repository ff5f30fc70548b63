"""Approval by the client itself: a form while the call waits, or in a result that the client comes back from."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult

from tests.adapters.mcp_server.clients import (
    APPROVE,
    DENY,
    IN_MEMORY,
    Way,
    answering,
    booking,
    every_generation,
    every_way,
    request_of,
    text_of,
)
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.adapters.mcp_server._elicitation import Suspension, answers_from_forms, forms_for, suspended_result
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Denial, Done, Grant
from toolcrib.testing import RecordingSink

_NEW = IN_MEMORY[1]
_KEY = b"k" * 32


def eliciting(**options: Any) -> ServerOptions:
    return ServerOptions(approve_by="elicit", **options)


async def asked(client: Client, place: str = "Oslo") -> InputRequiredResult:
    """Return what a client of the stateless generation is asked."""
    result = await client.session.call_tool("book", {"place": place}, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def come_back(client: Client, state: str | None, responses: dict[str, Any], place: str = "Oslo") -> Any:
    """Return what a client is answered that comes back with a state."""
    return await client.session.call_tool(
        "book", {"place": place}, input_responses=responses, request_state=state, allow_input_required=True
    )


DOUBTED = ApprovalRequest("ask_1", "call_1", "book", {"place": "Oslo"}, "d", in_doubt=True)


def test_the_form_of_a_call_in_doubt_has_three_answers() -> None:
    form = forms_for([DOUBTED])["ask_1"]

    assert form.params.message.startswith("book may have run already")
    assert form.params.requested_schema["properties"]["decision"]["enumNames"] == [*DOUBT_ANSWERS.values()]


@pytest.mark.parametrize(
    ("content", "kind", "done"),
    [
        ({"decision": "approve"}, Grant, None),
        ({"decision": "done", "result": '{"seat": 7}'}, Grant, Done({"seat": 7})),
        ({"decision": "done", "result": "seat 7"}, Grant, Done("seat 7")),
        ({"decision": "deny"}, Denial, None),
    ],
)
def test_each_answer_of_that_form_is_taken(content: Any, kind: type[Any], done: Done | None) -> None:
    (answer,), _ = answers_from_forms([DOUBTED], {"ask_1": ElicitResult(action="accept", content=content)})

    assert isinstance(answer, kind)
    assert getattr(answer, "done", None) == done


@pytest.mark.parametrize(
    ("suspension", "goes_on"),
    [
        (Suspension((replace(DOUBTED, in_doubt=False),), {}, "it waits"), "and runs once"),
        (Suspension((DOUBTED,), {}, "it may have been done"), "as they answered"),
        (Suspension((DOUBTED,), {}, "it is executed now", executed=True), "with its result"),
    ],
)
def test_the_text_for_a_suspended_call_says_how_the_same_call_goes_on(suspension: Suspension, goes_on: str) -> None:
    assert f"it goes on from here, {goes_on}." in text_of(suspended_result(suspension, "the console"))


def test_a_call_that_is_not_in_doubt_is_given_no_result() -> None:
    content = {"decision": "done", "result": "1"}

    (answer,), _ = answers_from_forms(
        [replace(DOUBTED, in_doubt=False)], {"ask_1": ElicitResult(action="accept", content=content)}
    )

    assert isinstance(answer, Denial)


# --- both generations ------------------------------------------------------------------------------------------------


@every_way
async def test_the_client_says_yes_and_the_record_says_that_nobody_verified_who(way: Way) -> None:
    booked, shown, watch = list[str](), list[str](), RecordingSink()
    server = build_server([booking(booked)], eliciting(sinks=(watch,), principal="ann"))

    async with way(server, elicitation_callback=answering(APPROVE, asked=shown)) as client:
        done = await client.call_tool("book", {"place": "Oslo"})

    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])
    assert shown == ['book needs approval\n  place = "Oslo"']
    record = watch.records[-1]
    assert record.approval is not None
    assert (record.approval["approver"], record.principal) == ("client via elicitation (unverified)", "ann")


@every_generation
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (DENY, "not this week"),
        (ElicitResult(action="accept", content={"decision": "deny"}), "`book` was denied by client"),
        (ElicitResult(action="decline"), "The user of the client declined to answer whether `book` may run"),
        (ElicitResult(action="accept", content={}), "is not valid: `decision` is None, and has to be one of 'approve'"),
        (
            ElicitResult(action="accept", content={"decision": "yes", "message": "go"}),
            "`decision` is 'yes', and has to",
        ),
    ],
    ids=["no", "no without a word", "declined", "empty form", "another word"],
)
async def test_anything_but_a_plain_yes_is_a_no(way: Way, answer: ElicitResult, told: str) -> None:
    booked: list[str] = []

    async with way(build_server([booking(booked)], eliciting()), elicitation_callback=answering(answer)) as client:
        refused = await client.call_tool("book", {"place": "Oslo"})

    assert refused.is_error
    assert told in text_of(refused)
    assert booked == []


@every_generation
async def test_a_form_that_was_closed_leaves_the_question_in_the_store(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = build_server([booking(booked)], eliciting(approvals=store))
    closed = ElicitResult(action="cancel")

    async with way(server, elicitation_callback=answering(closed, APPROVE)) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})
        done = await client.call_tool("book", {"place": "Oslo"})

    assert "form was closed" in text_of(waiting)
    assert (await store.show(request_of(waiting))).state == "used"
    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_the_user_of_a_client_is_not_asked_where_others_have_to_approve_the_call(way: Way) -> None:
    booked, shown, store = list[str](), list[str](), MemoryApprovalStore()
    server = build_server([booking(booked, approvals_needed=2)], eliciting(approvals=store))

    async with way(server, elicitation_callback=answering(APPROVE, asked=shown)) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})
        request = (await store.show(request_of(waiting))).request
        await store.answer(request.grant("ann"))
        await store.answer(request.grant("bob"))
        done = await client.call_tool("book", {"place": "Oslo"})

    assert "The user of this client cannot approve it alone" in text_of(waiting)
    assert (text_of(done), booked, shown) == ("booked Oslo", ["Oslo"], [])


@every_way
async def test_a_client_that_has_no_forms_is_sent_to_the_store(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()

    async with way(build_server([booking(booked)], eliciting(approvals=store))) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})
        await store.answer((await store.show(request_of(waiting))).request.grant("bob"))
        done = await client.call_tool("book", {"place": "Oslo"})

    assert "This client cannot ask its user" in text_of(waiting)
    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


@every_generation
async def test_a_standing_grant_in_the_store_is_enough(way: Way) -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = build_server([booking(booked)], eliciting(approvals=store))

    async with way(server, elicitation_callback=answering(ElicitResult(action="cancel"))) as client:
        request = (await store.show(request_of(await client.call_tool("book", {"place": "Oslo"})))).request
        await store.answer(request.always("bob"))
        other = await client.call_tool("book", {"place": "Rome"})

    assert (text_of(other), booked) == ("booked Rome", ["Rome"])


async def test_a_client_that_fails_at_the_form_leaves_the_question_open() -> None:
    booked: list[str] = []

    async def broken(context: Any, params: Any) -> Any:
        raise RuntimeError("no screen")

    async with IN_MEMORY[0](build_server([booking(booked)], eliciting()), elicitation_callback=broken) as client:
        waiting = await client.call_tool("book", {"place": "Oslo"})

    assert request_of(waiting)
    assert booked == []


# --- the sealed state of the stateless generation --------------------------------------------------------------------


async def test_the_client_cannot_read_the_state() -> None:
    async with _NEW(build_server([booking([])], eliciting()), elicitation_callback=answering()) as client:
        result = await asked(client)

    assert result.request_state is not None
    assert "Oslo" not in result.request_state


async def test_any_server_with_the_keys_and_the_store_goes_on(tmp_path: Path) -> None:
    booked, path = list[str](), tmp_path / "crib.db"

    def server() -> Any:
        return build_server([booking(booked)], eliciting(keys=[_KEY], approvals=SqliteApprovalStore(path)))

    async with _NEW(server(), elicitation_callback=answering()) as client:
        first = await asked(client)
    responses = dict.fromkeys(first.input_requests or {}, APPROVE)
    async with _NEW(server(), elicitation_callback=answering()) as client:
        done = await come_back(client, first.request_state, responses)
        again = await come_back(client, first.request_state, responses)

    assert (text_of(done), text_of(again), booked) == ("booked Oslo", "booked Oslo", ["Oslo"])


async def test_a_no_cannot_be_made_a_yes_with_the_same_state() -> None:
    booked: list[str] = []
    async with _NEW(build_server([booking(booked)], eliciting()), elicitation_callback=answering()) as client:
        first = await asked(client)
        [key] = first.input_requests or {}
        await come_back(client, first.request_state, {key: DENY})

        again = await come_back(client, first.request_state, {key: APPROVE})

    assert again.is_error
    assert text_of(again) == "Rejected: not this week"
    assert booked == []


@pytest.mark.parametrize("wrong", ["changed", "another call", "another key", "another service", "garbage"])
async def test_a_state_that_is_not_of_this_call_is_refused(wrong: str) -> None:
    booked: list[str] = []
    server = build_server([booking(booked)], eliciting(keys=[_KEY]))
    keys, name = ([b"o" * 32], "toolcrib") if wrong == "another key" else ([_KEY], "other")
    foreign = build_server([booking(booked)], eliciting(keys=keys, name=name))
    made = foreign if wrong in ("another key", "another service") else server
    async with _NEW(made, elicitation_callback=answering()) as client:
        first = await asked(client)
    state, place = first.request_state or "", "Rome" if wrong == "another call" else "Oslo"
    state = {"changed": f"{state[:-2]}{'A' if state[-2] != 'A' else 'B'}{state[-1]}", "garbage": "v1.x"}.get(
        wrong, state
    )
    responses = dict.fromkeys(first.input_requests or {}, APPROVE)

    async with _NEW(server, elicitation_callback=answering()) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await come_back(client, state, responses, place)

    assert booked == []


async def test_the_state_of_somebody_else_is_refused() -> None:
    booked: list[str] = []
    server = build_server([booking(booked)], eliciting())
    with acting_as("ann"):
        async with _NEW(server, elicitation_callback=answering()) as client:
            first = await asked(client)
    responses = dict.fromkeys(first.input_requests or {}, APPROVE)

    with acting_as("eve"):
        async with _NEW(server, elicitation_callback=answering()) as client:
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await come_back(client, first.request_state, responses)

    assert booked == []


async def test_a_state_that_has_expired_is_refused() -> None:
    booked: list[str] = []
    async with _NEW(
        build_server([booking(booked)], eliciting(state_seconds=0.02)), elicitation_callback=answering()
    ) as client:
        first = await asked(client)
        await asyncio.sleep(0.03)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await come_back(client, first.request_state, dict.fromkeys(first.input_requests or {}, APPROVE))

    assert booked == []


async def test_an_answer_to_another_question_is_none() -> None:
    booked: list[str] = []
    async with _NEW(build_server([booking(booked)], eliciting()), elicitation_callback=answering()) as client:
        first = await asked(client)

        waiting = await come_back(client, first.request_state, {"ask_other": APPROVE})

    assert request_of(waiting) in (first.input_requests or {})
    assert booked == []


async def test_a_long_state_stays_with_the_server() -> None:
    booked: list[str] = []
    place = "O" * 100_000
    async with _NEW(build_server([booking(booked)], eliciting()), elicitation_callback=answering()) as client:
        first = await asked(client, place)
        responses = dict.fromkeys(first.input_requests or {}, APPROVE)
        done = await come_back(client, first.request_state, responses, place)
        with pytest.raises(MCPError, match="no longer stored"):
            await come_back(client, first.request_state, responses, place)

    assert not done.is_error
    assert booked == [place]


async def test_a_client_that_waits_for_the_store_comes_back_by_itself() -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = build_server([booking(booked)], ServerOptions(approvals=store, wait=0.4))
    async with _NEW(server) as client:
        first = await asked(client)
        [entry] = await store.list()
        await store.answer(entry.request.grant())

        done = await come_back(client, first.request_state, {})

    assert first.input_requests is None
    assert (text_of(done), booked) == ("booked Oslo", ["Oslo"])


async def test_where_the_store_decides_a_client_cannot_answer_itself() -> None:
    booked, store = list[str](), MemoryApprovalStore()
    server = build_server([booking(booked)], ServerOptions(approvals=store, wait=0.2))
    async with _NEW(server, elicitation_callback=answering()) as client:
        first = await asked(client)
        [entry] = await store.list()

        again = await come_back(client, first.request_state, {entry.request.id: APPROVE})

    assert isinstance(again, InputRequiredResult) or again.is_error  # it waits, or has waited for long enough
    assert booked == []


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        build_server([booking([])], eliciting(keys=[b"short"]))
