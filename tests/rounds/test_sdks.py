"""Rounds of the objects that the providers' own SDKs return, whole and streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from mistralai.client import models as mistral
from openai.types.chat import ChatCompletionChunk
from pydantic import BaseModel, Field

from tests.formats.replies import NAMES, Asked, pieces, sdk_accepts, sdk_chunk, sdk_reply, whole
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS, WireFormat
from toolcrib.rounds import CallProgress, ToolRound, Transcript, decode, decode_stream
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


def incremental(*pieces: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a stream of Chat Completions with one piece of a call in each chunk."""
    deltas = [({"content": "", "tool_calls": [piece]}, None) for piece in pieces]
    base = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}
        for delta, stop in [*deltas, ({"content": ""}, "tool_calls")]
    ]


def piece(index: int, name: str = "", arguments: str = "", **id: str) -> dict[str, Any]:
    return {"index": index, "type": "function", "function": {"name": name, "arguments": arguments}, **id}


BEGUN = piece(0, "look", id="abcdefgh1")
OTHER = piece(1, "look", '{"city": "Rome"}', id="abcdefgh2")
PIECES: dict[str, list[dict[str, Any]]] = {
    "in two": [BEGUN, piece(0, arguments='{"city": "Oslo"}')],
    "bit by bit": [BEGUN, piece(0, arguments='{"city": '), piece(0, arguments='"Oslo"}')],
    "by turns": [BEGUN, OTHER, piece(0, arguments='{"city": "Oslo"}')],
    "empty at the end": [piece(0, "look", '{"city": "Oslo"}', id="abcdefgh1"), piece(0)],
    "empty elsewhere": [piece(0, "look", '{"city": "Oslo"}', id="abcdefgh1"), piece(1)],
}
CHUNKS: dict[str, tuple[WireFormat, Any]] = {
    "dicts of OpenAI": ("openai", dict),
    "objects of OpenAI": ("openai", ChatCompletionChunk.model_validate),
    "dicts of Mistral": ("mistral", dict),
    "objects of Mistral": ("mistral", mistral.CompletionChunk.model_validate),
    "events of Mistral": ("mistral", lambda chunk: mistral.CompletionEvent.model_validate({"data": chunk})),
}


@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("name", PIECES)
async def test_a_call_in_pieces_runs_though_later_pieces_have_no_id(name: str, kind: str) -> None:
    format, read = CHUNKS[kind]
    shown: list[CallProgress] = []

    async def stream() -> AsyncIterator[Any]:
        for chunk in incremental(*PIECES[name]):
            yield read(chunk)

    round = await decode_stream([look], stream(), format=format, on_call=shown.append)

    cities = ["Oslo", "Rome"] if name == "by turns" else ["Oslo"]
    assert ([call.input.city for call in round.tool_calls], round.recoverable_issues) == (cities, [])
    assert [one.arguments["city"] for one in shown if one.is_whole] == cities
    assert "sun in Oslo" in str(await committed(format, round))
