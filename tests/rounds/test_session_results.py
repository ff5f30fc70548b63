"""What a run of a session came to: one type with the answer, or with why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.replies import NAMES
from tests.rounds.conversations import add_other
from tests.rounds.endings import stopped, words_of
from tests.rounds.replies import adding
from toolcrib.calls import ApprovalRequest, ToolCall
from toolcrib.errors import NoResult, RoundError
from toolcrib.formats import WireFormat
from toolcrib.rounds import Finished, Session, Stopped, Unhandled, Waiting
from toolcrib.testing import ScriptedModel, wire_reply

each_format = pytest.mark.parametrize("format", NAMES)


@each_format
async def test_an_answer_is_the_result(format: WireFormat) -> None:
    answer = await Session(ScriptedModel("[1, 2]"), format=format).say("Count.").run(output=list[int])

    assert isinstance(answer, Finished)
    assert (answer.result, answer.waits_for) == ([1, 2], ())


@each_format
async def test_a_session_that_waits_for_a_person_says_what_to_do(format: WireFormat) -> None:
    model = ScriptedModel(ToolCall("add", {"a": 1}), "done")
    session = Session(model, tools=[adding([], requires_approval=True)], format=format).say("Add.")

    waiting = await session.run()
    with pytest.raises(NoResult, match=r"a person has to answer first: add needs approval; answer the requests"):
        waiting.result  # noqa: B018 -- the property raises
    with pytest.raises(AttributeError, match=r"waiting\.resolve\(\[waiting\.waits_for\[0\]\.grant\('ann'\)\]\)"):
        waiting.approve("ann")  # type: ignore[attr-defined]
    with pytest.raises(
        RoundError, match=r"a person has to answer first: add needs approval: .* run the session again, .*discard"
    ):
        session.say("And then?")
    [request] = waiting.waits_for
    assert isinstance(waiting, Waiting)
    assert isinstance(request, ApprovalRequest)
    await waiting.resolve([request.grant("ada")])
    answer = await session.run()

    assert answer.result == "done"


@pytest.mark.parametrize(
    ("format", "what"), [("openai", "custom"), ("openai_responses", "shell_call"), ("anthropic", "tool_use")]
)
async def test_a_session_that_waits_for_its_host_says_what_to_do(format: WireFormat, what: str) -> None:
    reply = wire_reply(format, text="Well.")
    add_other(format, reply)
    asked = stopped(format, reply, words_of(format, "tool_calls")[0]) if format != "openai_responses" else reply
    session = Session(ScriptedModel(asked, "done"), format=format).say("Go.")

    waiting = await session.run()
    with pytest.raises(NoResult, match=f"`{what}` waits for an answer of yours; commit what"):
        waiting.result  # noqa: B018 -- the property raises
    with pytest.raises(RoundError, match=f"`{what}` waits for an answer of yours: commit what"):
        session.say("And then?")
    [one] = waiting.waits_for
    assert isinstance(waiting, Waiting)
    assert isinstance(one, Unhandled)
    await waiting.commit(session, [one.answer("ok")])

    assert (await session.run()).result == "done"


@each_format
async def test_a_reply_without_an_answer_says_why(format: WireFormat) -> None:
    reply = stopped(format, wire_reply(format, text="So far"), words_of(format, "length")[0])
    session = Session(ScriptedModel(reply, "done"), format=format).say("Go.")

    cut = await session.run()
    with pytest.raises(NoResult, match="the reply ended without an answer: length"):
        cut.result  # noqa: B018 -- the property raises

    assert isinstance(cut, Stopped)
    assert cut.waits_for == ()
    assert (await session.run()).result == "done"


async def test_a_session_that_waits_takes_no_unknown_option_either() -> None:
    session = Session(ScriptedModel(ToolCall("add", {"a": 1})), tools=[adding([], requires_approval=True)]).say("Add.")
    waiting = await session.run()
    assert isinstance(waiting, Waiting)
    options: Any = {"grants": [waiting.waits_for[0].grant("ann")]}

    with pytest.raises(TypeError, match=r"session.run\(\) has no option `grants`. Here it is `await waiting.resolve"):
        await session.run(**options)
    with pytest.raises(TypeError, match="max_turns"):
        await session.run(**dict[str, Any](max_turns=3))
