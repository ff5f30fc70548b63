"""What listens to the replies of a session while they come: in a step, in a run, and for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.formats.replies import pieces
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import CallProgress, ChatRequest, Session, WireFormat, decode_stream
from toolcrib.testing import ScriptedModel
from toolcrib.tools import ez_tool


@ez_tool
def get_weather(city: str) -> str:
    """Say what the weather is like."""
    return f"{city}: 4 degrees"


class Streams:
    """A model that asks for the weather first, and then answers in two pieces."""

    async def reply(self, request: ChatRequest) -> AsyncIterator[dict[str, Any]]:
        return self._after_call() if len(request.messages) > 1 else self._call()

    async def _call(self) -> AsyncIterator[dict[str, Any]]:
        function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
        yield {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}

    async def _after_call(self) -> AsyncIterator[dict[str, Any]]:
        for piece in ("Take ", "a coat."):
            yield {"choices": [{"delta": {"content": piece}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "stop"}]}


class Heard:
    """What the three listeners were given."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[CallProgress] = []
        self.chunks: list[object] = []

    @property
    def listeners(self) -> Any:
        return {"on_text": self.texts.append, "on_call": self.calls.append, "on_chunk": self.chunks.append}

    def check(self) -> None:
        assert self.texts == ["Take ", "a coat."]
        assert [(call.name, call.is_whole) for call in self.calls][-1] == ("get_weather", True)
        assert len(self.chunks) == 5


@pytest.mark.parametrize("given_to", ["the run", "the session"])
async def test_a_run_tells_its_listeners_what_comes_in_each_of_its_replies(given_to: str) -> None:
    heard = Heard()
    of_session, of_run = ({}, heard.listeners) if given_to == "the run" else (heard.listeners, {})

    answer = await Session(Streams(), tools=[get_weather], **of_session).say("What do I wear?").run(**of_run)

    assert answer.result == "Take a coat."
    heard.check()


def test_a_run_from_plain_code_tells_them_too() -> None:
    heard = Heard()

    Session(Streams(), tools=[get_weather]).say("What do I wear?").run_sync(**heard.listeners)

    heard.check()


async def test_a_step_has_its_own_listeners_in_place_of_those_of_the_session() -> None:
    of_session, of_step = Heard(), Heard()
    session = Session(Streams(), tools=[get_weather], **of_session.listeners).say("What do I wear?")

    await session.step(**of_step.listeners)

    assert (of_session.calls, of_session.chunks) == ([], [])
    assert of_step.calls


async def test_a_reply_that_comes_whole_is_told_as_one_piece() -> None:
    heard = Heard()
    model = ScriptedModel(ToolCall("get_weather", {"city": "Oslo"}), "Take a coat.")

    await Session(model, tools=[get_weather]).say("What do I wear?").run(**heard.listeners)

    assert (heard.texts, heard.chunks) == (["Take a coat."], [])
    assert [(call.arguments, call.is_whole) for call in heard.calls] == [({"city": "Oslo"}, True)]


async def _chunks(format: WireFormat) -> AsyncIterator[object]:
    for chunk in pieces(format, "Hello you.", []):
        yield chunk


@pytest.mark.parametrize("format", [*PROVIDERS])
@pytest.mark.parametrize("is_named", [True, False])
async def test_the_text_of_a_stream_of_the_host_is_told_too(format: WireFormat, is_named: bool) -> None:
    heard = Heard()

    round = await decode_stream(
        [get_weather], _chunks(format), format=format if is_named else PROVIDERS[format], **heard.listeners
    )

    assert "".join(heard.texts) == round.text == "Hello you."
    assert len(heard.chunks) >= len(heard.texts)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("on_token", "Did you mean `on_text`?"),
        ("messages", "Did you mean `transcript`?"),
        ("approver", r"Here it is `run=Run\(approver=...\)`\."),
    ],
)
async def test_an_unknown_option_of_a_stream_is_told_by_the_name_that_was_called(option: str, told: str) -> None:
    unknown: Any = {option: None}

    with pytest.raises(TypeError, match=rf"decode_stream\(\) has no option `{option}`\. {told}"):
        await decode_stream([get_weather], _chunks("openai"), **unknown)


@pytest.mark.parametrize("name", ["on_text", "on_call", "on_chunk"])
async def test_an_async_listener_is_refused_before_any_request(name: str) -> None:
    async def listener(piece: Any) -> None: ...

    model, listeners = ScriptedModel(), dict[str, Any]({name: listener})

    with pytest.raises(TypeError, match=f"`{name}` is called while the reply comes, and never awaited"):
        Session(model, **listeners)
    with pytest.raises(TypeError, match=f"`{name}`"):
        await Session(model).say("Hi").run(**listeners)
    with pytest.raises(TypeError, match=f"`{name}`"):
        await decode_stream([get_weather], Streams()._after_call(), **listeners)
    assert model.requests == []
