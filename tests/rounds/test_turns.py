"""What a session asks with, where the user speaks again before the model has answered: each provider takes it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES
from tests.rounds.endings import stopped, words_of
from tests.rounds.provider_rules import refused
from toolcrib.calls import ToolCall
from toolcrib.formats import WireFormat
from toolcrib.rounds import Session
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import ez_tool

each_format = pytest.mark.parametrize("format", NAMES)
ENDINGS = ("finished", "length", "content_filter")


@ez_tool
def look(city: str) -> str:
    """Look at a city."""
    return f"sun in {city}"


def unanswered(format: WireFormat, ending: Any) -> dict[str, Any]:
    """Return a reply that says nothing, or too little, and is in no transcript."""
    words = words_of(format, ending) or words_of(format, "length")
    made: dict[str, Any] = stopped(format, wire_reply(format, text="" if ending == "finished" else "The"), words[0])
    return made


def is_taken(session: Session, model: ScriptedModel) -> bool:
    asked = [dict(item) for item in model.requests[-1].messages]
    return session.transcript.check() == [] and refused(session.format, asked, ["abcdefgh1"]) == []


@pytest.mark.parametrize("ending", ENDINGS)
@each_format
async def test_the_user_may_speak_after_a_reply_without_an_answer(format: WireFormat, ending: str) -> None:
    model = ScriptedModel(unanswered(format, ending), "After.")
    session = Session(model, format=format)

    await session.say("one").run()
    await session.say("two").run()

    assert is_taken(session, model)
    assert all(said in str(model.requests[-1].messages) for said in ("one", "two"))


@pytest.mark.parametrize("ending", ENDINGS)
@each_format
async def test_the_user_may_speak_after_results_without_an_answer(format: WireFormat, ending: str) -> None:
    call = ToolCall("look", {"city": "Oslo"}, "abcdefgh1")
    model = ScriptedModel(wire_reply(format, [call]), unanswered(format, ending), "After.")
    session = Session(model, tools=[look], format=format)

    await session.say("one").run()
    await session.say("two").run()

    assert is_taken(session, model)
    assert all(said in str(model.requests[-1].messages) for said in ("one", "sun in Oslo", "two"))


@each_format
async def test_the_user_may_speak_twice(format: WireFormat) -> None:
    model = ScriptedModel("After.")
    session = Session(model, format=format).say("one").say("two")

    await session.run()

    assert is_taken(session, model)
    assert all(said in str(model.requests[-1].messages) for said in ("one", "two"))
