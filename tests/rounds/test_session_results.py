"""What a run of a session came to: one type with the answer, or with why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rounds.endings import stopped
from tests.rounds.replies import adding, asks
from toolcrib.calls import ApprovalRequest, ToolCall
from toolcrib.errors import NoResult
from toolcrib.rounds import Finished, Session, Stopped, Unhandled, Waiting
from toolcrib.testing import ScriptedModel, wire_reply


async def test_an_answer_is_the_result() -> None:
    answer = await Session(ScriptedModel("[1, 2]")).say("Count.").run(output=list[int])

    assert isinstance(answer, Finished)
    assert (answer.result, answer.waits_for) == ([1, 2], ())


async def test_a_session_that_waits_for_a_person_says_what_to_do() -> None:
    model = ScriptedModel(ToolCall("add", {"a": 1}), "done")
    session = Session(model, tools=[adding([], requires_approval=True)]).say("Add.")

    waiting = await session.run()
    with pytest.raises(NoResult, match=r"a person has to approve `add` first; give the run an approver"):
        waiting.result  # noqa: B018 -- the property raises
    [request] = waiting.waits_for
    assert isinstance(waiting, Waiting)
    assert isinstance(request, ApprovalRequest)
    await waiting.resolve([request.grant("ada")])
    answer = await session.run()

    assert answer.result == "done"


async def test_a_session_that_waits_for_its_host_says_what_to_do() -> None:
    call: Any = {"type": "local_shell_call", "id": "c1", "call_id": "c1", "status": "completed", "action": {}}
    reply = wire_reply("openai_responses", [])
    reply["output"] = [call]
    session = Session(ScriptedModel(reply, "done"), format="openai_responses").say("Go.")

    waiting = await session.run()
    with pytest.raises(NoResult, match="`local_shell_call` waits for an answer of yours; commit what"):
        waiting.result  # noqa: B018 -- the property raises
    [one] = waiting.waits_for
    assert isinstance(waiting, Waiting)
    assert isinstance(one, Unhandled)
    await waiting.commit(session, [one.answer("ok")])

    assert (await session.run()).result == "done"


async def test_a_reply_without_an_answer_says_why() -> None:
    session = Session(ScriptedModel(stopped("openai", asks(text="So far"), "length"), "done")).say("Go.")

    cut = await session.run()
    with pytest.raises(NoResult, match="the reply ended without an answer: length"):
        cut.result  # noqa: B018 -- the property raises

    assert isinstance(cut, Stopped)
    assert cut.waits_for == ()
    assert (await session.run()).result == "done"
