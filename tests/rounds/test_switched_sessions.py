"""Sessions that go on with another model: each pair of formats, with what the run knows and what is kept in a store."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, adding
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.errors import RoundError
from toolcrib.pipeline import Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.rounds import Finished, Session, WireFormat
from toolcrib.testing import ScriptedModel

CALL = ToolCall("add", {"a": 1})


@pytest.mark.parametrize(("first", "second"), list(permutations(FORMATS, 2)))
async def test_a_session_goes_on_with_a_model_of_another_provider(first: WireFormat, second: WireFormat) -> None:
    session = Session(ScriptedModel(CALL, "Two."), format=first, tools=[adding(ran := [])])
    await session.say("Add.").run()

    dropped = session.switch(model := ScriptedModel(CALL, "Three."), format=second)
    made = await session.say("Again.").run()

    assert (made.result, dropped, len(ran)) == ("Three.", (), 2)
    assert session.transcript.check() == []
    assert session.transcript.format == session.format == model.requests[0].format == second
    assert session.usage.requests == 4


async def test_a_model_of_the_same_format_gets_the_transcript_as_it_is() -> None:
    session = Session(ScriptedModel("Hi."), provider_tools=[{"type": "web_search"}]).say("Hello.")
    await session.run()
    before = session.transcript

    session.switch(ScriptedModel("Bye."))

    assert session.transcript is before
    assert "provider_tools" in session.defaults


async def test_the_tools_of_the_provider_before_are_left_out() -> None:
    session = Session(ScriptedModel("Hi."), provider_tools=[{"type": "web_search"}]).say("Hello.")
    await session.run()

    dropped = session.switch(model := ScriptedModel("Bye."), format="anthropic")
    await session.say("More.").run()

    assert dropped == ("`provider_tools` of the provider before were left out",)
    assert model.requests[0].tools == ()


async def test_an_open_round_and_a_session_that_was_not_loaded_are_refused() -> None:
    session = Session(ScriptedModel(CALL), tools=[adding([])]).say("Add.")
    await session.step()
    stored = Session(ScriptedModel(), store=MemoryApprovalStore(), id="ann 1")

    for one, problem in ((session, "neither committed nor discarded"), (stored, "was not loaded")):
        with pytest.raises(RoundError, match=problem):
            one.switch(ScriptedModel(), format="anthropic")


async def test_a_refusal_leaves_the_session_as_it_was() -> None:
    reference: Any = {"role": "assistant", "content": [{"type": "hologram"}]}
    session = Session(ScriptedModel("Hi."), transcript=[{"role": "user", "content": "See."}, reference])

    with pytest.raises(ValueError, match="`hologram` of item 1"):
        session.switch(ScriptedModel(), format="gemini")

    assert (session.format, len(session.transcript)) == ("openai", 2)
    assert isinstance(await session.say("And?").run(), Finished)


async def test_a_switched_session_is_saved_and_loaded_in_its_new_format() -> None:
    store = MemoryApprovalStore()
    session = Session(ScriptedModel("Hi."), store=store, id="ann 1").say("Hello.")
    await session.run()

    session.switch(ScriptedModel("Bye."), format="anthropic")
    await session.save()
    later = await Session(ScriptedModel(), format="anthropic", store=store, id="ann 1").load()

    assert [*later.transcript] == [*session.transcript]


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "openai"])
async def test_a_turn_that_is_not_kept_stays_in_its_place(format: WireFormat) -> None:
    session = Session(ScriptedModel(CALL, "Two."), tools=[adding([])])
    await session.say("Add.").run()
    session.say("Well?").say("It is noon.", keep=False)

    session.switch(model := ScriptedModel("Yes."), format=format)
    await session.run()

    assert "It is noon." in str(model.requests[0].messages[-1])
    assert "It is noon." not in str(session.transcript)


async def test_a_run_with_provenance_reads_nothing_twice() -> None:
    run = Run(features=[Provenance()])
    session = Session(ScriptedModel(CALL, "Two."), tools=[adding([])], run=run)
    await session.say("Add.").run()

    session.switch(ScriptedModel(CALL, "Three."), format="anthropic")
    memory = memory_of(run)
    is_told = memory.is_told
    await session.say("Again.").run()

    assert (is_told, memory.is_told) == (False, False)
