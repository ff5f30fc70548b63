"""Tools that were defined strictly: a model then says null for what it leaves out."""

from typing import Any

import pytest

from tests.rounds.replies import FORMATS, adding, asks, round_of
from toolcrib.calls import ToolCall
from toolcrib.rounds import Finished, Session, WireFormat, decode
from toolcrib.testing import ScriptedModel

NULL = ("add", {"a": 1, "b": None})


@pytest.mark.parametrize("format", FORMATS)
def test_a_null_stands_for_what_is_left_out(format: WireFormat) -> None:
    round = decode([adding([])], asks(NULL, format=format), strict=True)

    assert round.expect_one().input.b == 1


def test_a_null_is_a_misfit_where_tools_were_not_strict() -> None:
    round = round_of([adding([])], NULL)

    assert [issue.outcome.code for issue in round.recoverable_issues] == ["invalid_arguments"]


@pytest.mark.parametrize(
    "raw", ['{"a": null', "null", "[null]", '{"a": null, "b": "null"}', '{"a": 1, "a": 2, "b": null}']
)
def test_what_does_not_fit_is_said_all_the_same(raw: str) -> None:
    round = round_of([adding([])], ("add", raw), ("nope", raw), strict=True)

    assert [issue.outcome.code for issue in round.recoverable_issues] == ["invalid_arguments", "unknown_tool"]


async def test_the_transcript_keeps_the_null() -> None:
    round = decode([adding([])], asks(("add", '{"a": 1, "b": null}')), strict=True)
    messages: list[Any] = []

    await round.commit(messages, [round.expect_one().complete(2)])

    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a": 1, "b": null}'


async def test_a_session_may_be_strict() -> None:
    ran: list[Any] = []
    model = ScriptedModel(ToolCall(*NULL), "done")

    made = await Session(model, tools=[adding(ran)], strict=True).say("Add.").run()

    assert isinstance(made, Finished)
    assert ran == [(1, 1)]
    assert model.requests[0].tools[0]["function"]["strict"] is True
