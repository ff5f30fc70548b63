"""Turns that are sent and not kept: valid in each request, in no transcript, and gone with the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, adding
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.errors import RoundError
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import ChatRequest, Session, WireFormat
from toolcrib.testing import ScriptedModel

NOTE = "It is noon."
CALL = ToolCall("add", {"a": 1})


def notes(request: ChatRequest) -> int:
    """Return how often a request has the note; it has to be one that its provider takes."""
    assert PROVIDERS[request.format].check(request.messages) == []
    return json.dumps(request.messages).count(NOTE)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_turn_that_is_not_kept_is_sent_until_the_answer(format: WireFormat, is_first: bool) -> None:
    model = ScriptedModel("Hi.", CALL, "Two.", "Bye.")
    session = Session(model, format=format, tools=[adding([])])
    plain = Session(ScriptedModel("Hi.", CALL, "Two.", "Bye."), format=format, tools=[adding([])])
    await session.say("Hello.").run()

    said = session.say(NOTE, keep=False).say("Add.") if is_first else session.say("Add.").say(NOTE, keep=False)
    await said.run()
    await session.say("Thanks.").run()

    for text in ("Hello.", "Add.", "Thanks."):
        await plain.say(text).run()
    assert [notes(request) for request in model.requests] == [0, 1, 1, 0]
    assert [*session.transcript] == [*plain.transcript]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_turn_that_is_not_kept_may_follow_results(format: WireFormat) -> None:
    model = ScriptedModel(CALL, CALL, "Two.")
    session = Session(model, format=format, tools=[adding([])]).say("Add.")
    asked: Any = await session.step()
    await asked.round.run(session)

    await session.say(NOTE, keep=False).run()

    assert [notes(request) for request in model.requests] == [0, 1, 1]
    assert (NOTE in json.dumps(session.transcript), session.transcript.check()) == (False, [])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("before", [[], ["Hi."]])
async def test_a_turn_that_is_not_kept_stands_with_one_that_is(format: WireFormat, before: list[str]) -> None:
    model = ScriptedModel("Hi.", "Two.")
    session = Session(model, format=format)
    for _ in before:
        await session.say("Hello.").run()
    session.say(NOTE, keep=False)

    with pytest.raises(RoundError, match=r"`session.say\(\.\.\.\)`"):
        await session.step()
    await session.say("Add.").run()

    assert [notes(request) for request in model.requests][len(before) :] == [1]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("again", ["It is one.", None])
async def test_a_process_that_comes_back_sends_what_is_so_now(format: WireFormat, again: str | None) -> None:
    store, model = MemoryApprovalStore(), ScriptedModel(CALL, RuntimeError("down"), "Two.", "Bye.")
    process: dict[str, Any] = {"format": format, "tools": [adding([])], "store": store, "id": "ann"}
    with pytest.raises(RuntimeError, match="down"):
        await Session(model, **process).say("Add.").say(NOTE, keep=False).run()

    session = Session(model, **process).say("Add.")
    await (session if again is None else session.say(again, keep=False)).run()
    await Session(model, **process).say("Thanks.").run()

    sent = [json.dumps(request.messages) for request in model.requests]
    assert [notes(request) for request in model.requests] == [1, 1, 1 if again is None else 0, 0]
    assert [text.count(again or NOTE) for text in sent[2:]] == [1, 0]


async def test_a_copy_and_a_session_from_json_send_it_too() -> None:
    model = ScriptedModel("One.", "One.", "One.")
    session = Session(model).say("Add.").say(NOTE, keep=False)

    for one in (session.copy(), await Session.from_json(model, session.to_json()), session):
        await one.run()

    assert [notes(request) for request in model.requests] == [1, 1, 1]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("words", [None, ["See", b"1"], {"role": "user"}])
def test_what_is_said_is_a_text(words: Any, keep: bool) -> None:
    session = Session(ScriptedModel("Hi."))

    with pytest.raises(TypeError, match=r"`say` takes a text, .*: append a message with other parts"):
        session.say(words, keep=keep)

    assert session.transcript == []
