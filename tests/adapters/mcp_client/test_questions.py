"""What a server asks while a call waits: a person, a model, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

import tests.adapters.mcp_client.small_server as module
from tests.adapters.mcp_client.servers import called, failed, outcome_of
from tests.adapters.mcp_client.small_server import small_server
from toolcrib.adapters.mcp_client import Elicitation, connect
from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all
from toolcrib.calls import ApprovalRequest, Completed, Denial, Grant
from toolcrib.pipeline import Run

both_generations = pytest.mark.parametrize("mode", ["auto", "legacy"])


def answering(answer: Any) -> Any:
    async def elicit(question: Elicitation) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return elicit


@both_generations
async def test_a_callback_answers_and_defaults_are_filled_in(mode: str) -> None:
    async with connect(small_server(), mode=mode, elicit=answering({"name": "Ann"})).open() as tools:
        assert await called(tools, "book", city="Oslo") == {"result": "1 in Oslo for Ann"}


@both_generations
@pytest.mark.parametrize("answer", [False, None])
async def test_a_no_is_a_no(mode: str, answer: bool | None) -> None:
    async with connect(small_server(), mode=mode, elicit=answering(answer)).open() as tools:
        outcome = await failed(tools, "book", city="Oslo")

    assert "declin" in outcome.message or "cancel" in outcome.message


@both_generations
@pytest.mark.parametrize(
    ("answer", "words"),
    [({"name": "Ann", "beds": "two"}, "beds: must be an integer"), (RuntimeError("asleep"), "asleep")],
)
async def test_an_answer_that_does_not_fit_and_one_that_fails_are_said(mode: str, answer: Any, words: str) -> None:
    async with connect(small_server(), mode=mode, elicit=answering(answer)).open() as tools:
        outcome = await failed(tools, "book", city="Oslo")

    assert words in outcome.message


@both_generations
async def test_without_a_callback_the_run_s_approver_is_asked(mode: str) -> None:
    asked: list[ApprovalRequest] = []

    async def ann(request: ApprovalRequest) -> Grant:
        asked.append(request)
        return request.grant("ann", user_input={"name": "Ann", "beds": 2})

    async with connect(small_server(), mode=mode).open() as tools:
        outcome = await outcome_of(tools, "book", run=Run(approver=ann), city="Oslo")

    assert isinstance(outcome, Completed)
    assert outcome.value == {"result": "2 in Oslo for Ann"}
    assert (asked[0].tool, asked[0].reason) == ("book", "Who sleeps in Oslo?")
    assert (asked[0].asked_by, asked[0].arguments) == ("small", {"beds": 1})
    assert asked[0].text() == (
        "during book, the server small asks: Who sleeps in Oslo?\n  beds = 1\nfields: name* (string), beds (integer)"
    )


@both_generations
@pytest.mark.parametrize(("approver", "words"), [(None, "declin"), (deny_all, "declin"), (approve_all, "cancel")])
async def test_nobody_a_denial_and_a_bare_yes_fill_in_no_form(mode: str, approver: Any, words: str) -> None:
    async with connect(small_server(), mode=mode).open() as tools:
        outcome = await outcome_of(tools, "book", run=Run(approver=approver), city="Oslo")

    assert not isinstance(outcome, Completed)
    assert words in outcome.text()


@both_generations
async def test_who_says_yes_and_leaves_out_what_is_required_is_asked_again(mode: str) -> None:
    asked: list[ApprovalRequest] = []

    async def ann(request: ApprovalRequest) -> Grant:
        asked.append(request)
        return request.grant("ann", override_args={"name": "Ann"} if len(asked) == 2 else None)

    async with connect(small_server(), mode=mode).open() as tools:
        outcome = await outcome_of(tools, "book", run=Run(approver=ann), city="Oslo")

    assert isinstance(outcome, Completed)
    assert outcome.value == {"result": "1 in Oslo for Ann"}
    assert asked[1].metadata["missing"] == "name: missing, it is required"
    assert asked[0].id != asked[1].id


@both_generations
@pytest.mark.parametrize(
    "options", [{}, {"elicit": answering({"name": 5551234})}, {"elicit": answering(RuntimeError("asleep"))}]
)
async def test_the_log_has_neither_the_words_of_a_question_nor_an_answer(
    mode: str, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "toolcrib"):
        async with connect(small_server(), mode=mode, **options).open() as tools:
            await outcome_of(tools, "book", city="Oslo-7")

    lines = [line.getMessage() for line in caplog.records if line.name.startswith("toolcrib")]
    assert any("question during book" in line for line in lines)
    assert not any("Oslo-7" in line or "5551234" in line for line in lines)


@both_generations
async def test_the_log_has_no_answer_of_an_approver(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    async def ann(request: ApprovalRequest) -> Grant:
        return request.grant("ann", override_args={"name": 5551234})

    with caplog.at_level("WARNING", "toolcrib"):
        async with connect(small_server(), mode=mode).open() as tools:
            await outcome_of(tools, "book", run=Run(approver=ann), city="Oslo-7")

    assert "a question during book was approved without what it asks for" in caplog.text
    assert "Oslo-7" not in caplog.text
    assert "5551234" not in caplog.text


def test_a_question_of_a_server_is_not_answered_for_good() -> None:
    request = ApprovalRequest("ask_1", "call_1", "book", {}, "", asked_by="small")

    with pytest.raises(ValueError, match="small asks this during one call"):
        request.always("ann")

    assert ApprovalRequest.from_dict(request.to_dict()).asked_by == "small"


class Answered(MemoryApprovalStore):
    """A store whose requests are answered as they come."""

    async def put(self, request: ApprovalRequest) -> None:
        await super().put(request)
        await self.answer(request.grant("ann (console)", override_args={"name": "Ann"}))


@both_generations
async def test_where_no_approver_is_there_the_question_waits_in_the_store(mode: str) -> None:
    store = Answered()

    async with connect(small_server(), mode=mode).open() as tools:
        outcome = await outcome_of(tools, "book", run=Run(approvals=store, principal="ann"), city="Oslo")

    assert isinstance(outcome, Completed)
    assert outcome.value == {"result": "1 in Oslo for Ann"}
    assert [entry.request.principal for entry in await store.list()] == ["ann"]


@both_generations
async def test_a_question_that_is_not_answered_in_the_store_is_withdrawn(mode: str) -> None:
    store = MemoryApprovalStore()

    async with connect(small_server(), mode=mode, question_wait=0).open() as tools:
        outcome = await outcome_of(tools, "book", run=Run(approvals=store), city="Oslo")

    assert "cancel" in outcome.text()
    assert [entry.state for entry in await store.list()] == ["answered"]


async def test_two_runs_on_one_connection_are_each_asked_their_own() -> None:
    async def asked_of(name: str) -> Any:
        async def person(request: ApprovalRequest) -> Grant | Denial:
            await asyncio.sleep(0)
            return request.grant(name, user_input={"name": name})

        return (await outcome_of(tools, "book", run=Run(approver=person), city="Oslo")).text()

    async with connect(small_server()).open() as tools:
        ann, bob = await asyncio.gather(asked_of("Ann"), asked_of("Bob"))

    assert "for Ann" in ann
    assert "for Bob" in bob


async def test_where_it_cannot_be_known_whose_question_it_is_nobody_is_asked(tmp_path: Path) -> None:
    # a server in this process would hand the context of the call on with its question
    started = [sys.executable, str(module.__file__), str(tmp_path / "notes")]
    asked, begun, go_on = list[str](), asyncio.Event(), asyncio.Event()

    async def person(request: ApprovalRequest) -> Grant:
        asked.append(request.reason)
        if not begun.is_set():
            begun.set()
            await go_on.wait()
        return request.grant("ann", user_input={"name": "Ann"})

    async with connect(started, mode="legacy").open() as tools:
        waiting = asyncio.create_task(outcome_of(tools, "book", run=Run(approver=person), city="Oslo"))
        await begun.wait()
        other = await outcome_of(tools, "book", run=Run(), city="Bergen")
        go_on.set()
        await waiting

    assert not isinstance(other, Completed)
    assert asked == ["Who sleeps in Oslo?"]


@both_generations
async def test_a_session_of_the_sdk_answers_by_its_own_callbacks(mode: str) -> None:
    import mcp_types as types  # noqa: PLC0415

    async def theirs(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async with (
        Client(small_server(), mode=mode, elicitation_callback=theirs) as client,
        connect(client.session).open() as tools,
    ):
        assert await called(tools, "book", city="Oslo") == {"result": "1 in Oslo for Ann"}
