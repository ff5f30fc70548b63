"""Marks of a provider's cache: on instructions, tools and the user's last message, and nowhere where none are taken."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.rounds.replies import FORMATS, adding
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import ChatRequest, Session, WireFormat, client_model
from toolcrib.testing import ScriptedModel

ADD = ToolCall("add", {"a": 1})
MARKS = {"anthropic": {"cache_control": {"type": "ephemeral"}}, "bedrock": {"cachePoint": {"type": "default"}}}
MARKED = [format for format in FORMATS if format in MARKS]
UNMARKED = [format for format in FORMATS if format not in MARKS]


def marks(sent: Any) -> int:
    """Return how many marks there are in a part of a request."""
    text = json.dumps(sent)
    return text.count('"cache_control"') + text.count('"cachePoint"')


async def asked(format: WireFormat, **options: Any) -> tuple[list[ChatRequest], Session]:
    """Return the requests of a session in which a tool was called, and then something more was said."""
    model = ScriptedModel([ADD, ADD], "Two.", "Bye.")
    session = Session(model, format=format, tools=[adding([])], system="Add.", **options)
    await session.say("Add.").run()
    await session.say("Thanks.").run()
    return model.requests, session


@pytest.mark.parametrize("format", MARKED)
async def test_tools_and_the_last_message_are_marked(format: WireFormat) -> None:
    requests, session = await asked(format, cache=True)

    plain, _ = await asked(format)
    for request, unmarked in zip(requests, plain, strict=True):
        last = max(at for at, item in enumerate(request.messages) if item["role"] == "user")
        assert (marks(request.messages), marks(request.messages[last]["content"][-1])) == (1, 1)
        assert (marks(request.tools), marks(request.tools[-1])) == (1, 1)
        assert PROVIDERS[format].check(request.messages) == []
        assert request.messages[:last] == unmarked.messages[:last]
        assert (request.cache, unmarked.cache, marks(unmarked.messages), marks(unmarked.tools)) == (True, False, 0, 0)
    assert marks([*session.transcript]) == 0


@pytest.mark.parametrize("format", UNMARKED)
async def test_a_format_without_marks_is_sent_as_it_is(format: WireFormat) -> None:
    requests, _ = await asked(format, cache=True)
    plain, _ = await asked(format)

    assert [(request.messages, request.tools) for request in requests] == [(one.messages, one.tools) for one in plain]
    assert PROVIDERS[format].cached_system("Add.") == "Add."


@pytest.mark.parametrize("format", MARKED)
@pytest.mark.parametrize("text", ["Add.", ""])
def test_instructions_are_marked_at_their_end(format: WireFormat, text: str) -> None:
    made = PROVIDERS[format].cached_system(text)

    assert (marks(made), text in json.dumps(made)) == (int(bool(text)), True)


@pytest.mark.parametrize("format", MARKED)
async def test_a_mark_of_the_hosts_own_is_not_set_again(format: WireFormat) -> None:
    mark: Any = MARKS[format]
    rules, text = PROVIDERS[format], {"type": "text", "text": "Hi."} if format == "anthropic" else {"text": "Hi."}
    content = [{**text, **mark}] if format == "anthropic" else [text, mark]
    tools = ({"name": "a", **mark}, {"name": "b"}) if format == "anthropic" else ({"toolSpec": {"name": "a"}}, mark)

    assert rules.cached_messages(({"role": "user", "content": content},)) == ({"role": "user", "content": content},)
    assert rules.cached_tools(tools) == tools


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("content", [[], "", " ", [{"type": "text", "text": " "}], None])
def test_what_takes_no_mark_is_left_as_it_is(format: WireFormat, content: Any) -> None:
    if format == "bedrock" and content == [{"type": "text", "text": " "}]:
        content = []  # a point stands beside a text, and not on it
    rules, messages = PROVIDERS[format], ({"role": "user", "content": content},)

    assert rules.cached_messages(messages) == messages
    assert (rules.cached_messages(()), rules.cached_tools(())) == ((), ())


def test_a_tool_that_is_not_in_the_prompt_takes_no_mark() -> None:
    tools = ({"name": "a"}, {"name": "b", "defer_loading": True})

    first, last = PROVIDERS["anthropic"].cached_tools(tools)

    assert (marks(first), last) == (1, tools[1])
    assert PROVIDERS["anthropic"].cached_tools(tools[1:]) == tools[1:]


class Client:
    """A client that notes the requests that it is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.messages = self

    def create(self, **request: Any) -> Any:
        self.sent.append(deepcopy(request))
        return {"role": "assistant", "content": [{"type": "text", "text": '{"a": 1}'}], "stop_reason": "end_turn"}


Client.__module__ = "anthropic"


@pytest.mark.parametrize("output", [str, dict[str, int], dict[str, Any]])
@pytest.mark.parametrize("cache", [True, False])
async def test_a_client_marks_the_instructions(output: Any, cache: bool) -> None:
    client = Client()
    session = Session(client_model(client, "claude"), system="Add.", tools=[adding([])], cache=cache)

    await session.say("One.").step(output=output, commit=False)

    [sent] = client.sent
    TypeAdapter[Any](MessageCreateParamsNonStreaming).validate_python(sent)
    assert [marks(sent[key]) for key in ("system", "tools", "messages")] == [int(cache)] * 3
    assert isinstance(sent["system"], list) is cache
