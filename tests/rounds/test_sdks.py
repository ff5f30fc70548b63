"""Rounds of the objects that the providers' own SDKs return, whole and streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from tests.formats.replies import NAMES, Asked, pieces, sdk_accepts, sdk_chunk, sdk_reply, whole
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, WireFormat
from toolcrib.rounds import ToolRound, Transcript, decode, decode_stream
from toolcrib.testing import wire_reply
from toolcrib.tools import ez_tool, tool_input

each_provider = pytest.mark.parametrize("provider", NAMES)
CALLS = [Asked("abcdefgh1"), Asked("abcdefgh2", "nope"), Asked("abcdefgh3", arguments={"town": "Oslo"})]


@ez_tool
async def look(city: str) -> str:
    """Look at the weather."""
    return f"sun in {city}"


async def committed(provider: WireFormat, round: ToolRound) -> Transcript:
    transcript = Transcript(PROVIDERS[provider].user("Hi."), provider)
    plan = await round.apply_hooks()
    await plan.commit(transcript, await plan.run_pending())
    return transcript


@each_provider
async def test_a_reply_of_the_sdk_is_a_round(provider: WireFormat) -> None:
    round = decode([look], sdk_reply(provider, whole(provider, "Well.", CALLS)))

    transcript = await committed(provider, round)

    assert (round.format, round.text, transcript.check()) == (provider, "Well.", [])
    assert [issue.outcome.code for issue in round.recoverable_issues] == ["unknown_tool", "invalid_arguments"]
    assert "sun in Oslo" in str(transcript)
    sdk_accepts(provider, transcript)


@each_provider
async def test_a_stream_of_the_sdk_is_a_round(provider: WireFormat) -> None:
    async def stream() -> AsyncIterator[Any]:
        for piece in pieces(provider, "Well.", CALLS):
            yield sdk_chunk(provider, piece)

    seen: list[object] = []
    before = Transcript(PROVIDERS[provider].user("Hi."), provider)
    round = await decode_stream([look], stream(), on_chunk=seen.append, transcript=before, format=provider)

    transcript = await committed(provider, round)

    assert (len(round.tool_calls), len(round.recoverable_issues), transcript.check()) == (1, 2, [])
    assert len(seen) == len(pieces(provider, "Well.", CALLS))
    sdk_accepts(provider, transcript)


# --- inputs that choose


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    kind: Literal["square"]
    side: float


@tool_input("draw", output=str)
class Draw(BaseModel):
    """Draw a shape."""

    shape: Annotated[Circle | Square, Field(discriminator="kind")]
    unit: Unit = Unit.CELSIUS


@each_provider
def test_an_input_may_be_a_choice_in_every_format(provider: WireFormat) -> None:
    sent = [ToolCall("draw", {"shape": {"kind": "square", "side": 2}, "unit": "f"}, "abcdefgh1")]

    call = decode([Draw], wire_reply(provider, sent)).expect_one()

    match call.input:
        case Draw(shape=Square(side=side), unit=Unit.FAHRENHEIT):
            assert side == 2
        case other:
            pytest.fail(f"it is {other!r}")


@each_provider
def test_a_choice_that_does_not_fit_names_the_field(provider: WireFormat) -> None:
    sent = [ToolCall("draw", {"shape": {"kind": "line"}, "unit": "k"}, "abcdefgh1")]

    [issue] = decode([Draw], wire_reply(provider, sent)).recoverable_issues

    assert [problem.field for problem in issue.outcome.problems] == ["shape", "unit"]


def test_a_choice_that_is_no_object_is_refused_where_it_is_declared() -> None:
    with pytest.raises(TypeError, match=r"make it one with a RootModel: `class Input\(RootModel\[Unit\]\)`"):
        tool_input("unit")(Unit)
