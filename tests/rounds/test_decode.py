"""Decoding: which calls are in a reply, and which of them can be made."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, ReadFile, WebSearch, adding, asks, round_of
from toolcrib.errors import RoundError, ToolConstraintError
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds import Session, WireFormat, decode, decode_stream
from toolcrib.testing import RecordingSink, ScriptedModel
from toolcrib.toolsets import ToolAvailability, Toolset, off, use


@pytest.mark.parametrize("format", FORMATS)
def test_the_calls_of_a_reply_are_read_whatever_the_provider(format: WireFormat) -> None:
    reply = asks(("web_search", {"query": "x"}), ("read_file", {"path": "/a"}), format=format, text="Let me look.")

    round = decode([WebSearch, ReadFile], reply)

    assert [call.input for call in round.tool_calls] == [WebSearch(query="x"), ReadFile(path="/a")]
    assert (round.text, round.format, round.recoverable_issues) == ("Let me look.", format, [])


def test_a_shape_of_no_format_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"decode\(..., format="):
        decode([WebSearch], {"answer": 42})


def parts_of(value: Any, called: str) -> Iterator[Any]:
    """Yield each part of a reply that has a call in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        if called in str(part) and not isinstance(part, str):
            yield part
            yield from parts_of(part, called)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_a_part_of_a_reply_is_refused_and_no_call_in_it_is_missed(format: WireFormat, named: bool) -> None:
    reply = asks(("web_search", {"query": "x"}), format=format, text="Let me look.")
    parts = [*parts_of(reply, "web_search")]
    assert parts

    for part in parts:
        found: list[Any] = []
        with suppress(TypeError, ValueError):
            found = decode([WebSearch], part, format=format if named else None).tool_calls
            assert [call.input for call in found] == [WebSearch(query="x")], part
        if not found:
            with pytest.raises(ValueError, match=r"the whole of what the client returned|which no provider|taken for"):
                decode([WebSearch], part, format=format if named else None)


def test_a_reply_that_is_no_reply_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="SimpleNamespace"):
        decode([WebSearch], SimpleNamespace(choices=[]))


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("nope", "{}", "unknown_tool"),
        ("web_search", '{"query": 1}', "invalid_arguments"),
        ("web_search", '{"query": "x", "page": 2}', "invalid_arguments"),
        ("web_search", '{"query": "x', "invalid_arguments"),
        ("read_file", '{"path": "/a"}', "not_available"),
    ],
)
def test_what_is_wrong_with_a_call_is_a_recoverable_issue(name: str, raw: str, code: str) -> None:
    class Tools(Toolset):
        web_search = use(WebSearch)
        read_file = off(ReadFile)

    round = round_of(Tools, (name, raw))

    [issue] = round.recoverable_issues
    assert (round.tool_calls, issue.outcome.code, issue.metadata.arguments) == ([], code, raw)
    assert round.continue_suggestion is not None
    assert issue.reason in round.continue_suggestion


def test_what_is_available_may_be_chosen() -> None:
    round = round_of(
        [WebSearch, ReadFile], ("read_file", {"path": "/a"}), available=ToolAvailability.only("web_search")
    )

    assert [issue.outcome.code for issue in round.recoverable_issues] == ["not_available"]


def test_availability_of_a_tool_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ToolConstraintError, match="red_file"):
        round_of([ReadFile], available=ToolAvailability.only("red_file"))


@pytest.mark.parametrize("format", FORMATS)
async def test_an_id_that_is_there_twice_is_given_once(format: WireFormat) -> None:
    reply = asks(("web_search", {"query": "x"}), format=format)
    first = decode([WebSearch], asks(("web_search", {"query": "y"}), format=format))
    transcript = list[Any]()
    await first.commit(transcript, [first.expect_one().complete({"snippets": []})])

    round = decode([WebSearch], reply, transcript=transcript)

    assert round.expect_one().id != first.expect_one().id
    assert "call_0" in round.problems[0]


@pytest.mark.parametrize("format", FORMATS)
def test_a_turn_that_the_host_appended_itself_is_refused_before_anything_runs(format: WireFormat) -> None:
    reply = asks(("web_search", {"query": "x"}), format=format)
    appended = list(decode([WebSearch], reply).items)

    with pytest.raises(RoundError, match="commit adds the model's turn itself, so leave it out"):
        decode([WebSearch], reply, transcript=appended)


def test_decoding_asks_counts_and_records_nothing() -> None:
    sink, scope = RecordingSink(), Run()

    decode(Pipeline([WebSearch], sinks=[sink]), asks(("web_search", "{"), ("web_search", {"query": "x"})), run=scope)

    assert (sink.events, scope.calls, scope.retries) == ([], {}, {})


async def test_a_stream_is_decoded_when_it_has_ended() -> None:
    seen: list[object] = []

    async def chunks() -> AsyncIterator[object]:
        for delta in (
            {"role": "assistant", "tool_calls": [_part('{"qu', id="call_0", name="web_search")]},
            {"tool_calls": [_part('ery": "x"}')]},
        ):
            yield _chunk(delta)
        yield _chunk({}, "tool_calls")

    round = await decode_stream([WebSearch], chunks(), on_chunk=seen.append)

    assert round.expect_one().input == WebSearch(query="x")
    assert (len(seen), round.problems) == (3, ())


def test_a_stream_that_was_cut_leaves_an_issue() -> None:
    part = _part('{"query": "x', id="call_0", name="web_search")

    round = decode([WebSearch], [_chunk({"role": "assistant", "tool_calls": [part]})])

    assert [issue.outcome.code for issue in round.recoverable_issues] == ["invalid_arguments"]
    assert round.problems


def test_an_empty_stream_has_to_say_its_format() -> None:
    with pytest.raises(ValueError, match="no chunks"):
        decode([WebSearch], [])


def test_one_call_is_what_is_expected() -> None:
    round = round_of([WebSearch], ("web_search", {"query": "x"}))

    assert round.expect_one().name == "web_search"
    assert round.expect_at_most_one() is not None


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([], "no call"),
        ([("add", {"a": 1}), ("add", {"a": 2})], r"2 calls \(.*\), and one was"),
        ([("add", {"a": "x"})], "must be an integer"),
    ],
)
def test_anything_but_one_call_is_told(calls: list[Any], told: str) -> None:
    round = round_of([adding([])], *calls)

    with pytest.raises(RoundError, match=told):
        round.expect_one()


def test_at_most_one_call_may_be_none() -> None:
    assert round_of([adding([])]).expect_at_most_one() is None


def _part(arguments: str, **rest: str) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": rest["name"]} if "name" in rest else {})
    return {"index": 0, "function": function} | ({"id": rest["id"], "type": "function"} if "id" in rest else {})


def _chunk(delta: dict[str, Any], stop: str | None = None) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def test_a_format_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="format is 'opnai'; did you mean 'openai'"):
        decode([ReadFile], {}, format="opnai")


async def _asked() -> object:
    return {}


async def _streamed() -> AsyncIterator[object]:
    yield {}


class Stream:
    """A stream as a sync client of a provider's has it."""

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        raise StopIteration


@pytest.mark.parametrize("format", [None, "openai"])
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_asked, "a coroutine is neither .*; await it first"),
        (_streamed, r"an? async_generator is .*; it is a stream: `await decode_stream\(tools, stream\)`"),
        (Stream, r"a Stream is neither .*; it is a stream: `decode\(tools, list\(stream\)\)`"),
    ],
)
async def test_what_is_not_a_reply_yet_is_told_so(make: Any, told: str, format: WireFormat | None) -> None:
    reply = make()

    with pytest.raises(TypeError, match=told):
        decode([ReadFile], reply, format=format)
    if make is _asked:
        await reply


class Manager(AbstractAsyncContextManager[Any]):
    """A stream that has to be entered, as that of Anthropic's `client.messages.stream(...)`."""

    async def __aexit__(self, *error: object) -> None: ...


class SyncManager(AbstractContextManager[Any]):
    """One of a sync client."""

    def __exit__(self, *error: object) -> None: ...


@pytest.mark.parametrize(("make", "how"), [(Manager, "`async with"), (SyncManager, r"`with .*`decode\(tools, list")])
async def test_a_stream_that_has_to_be_entered_is_told_so(make: Any, how: str) -> None:
    with pytest.raises(TypeError, match=f"is not an async stream: enter it by {how}"):
        await decode_stream([ReadFile], make())


async def test_a_stream_of_text_is_told_that_it_has_no_calls() -> None:
    async def texts() -> AsyncIterator[str]:
        yield "Hello"

    with pytest.raises(TypeError, match="give the stream itself, and on_text="):
        await decode_stream([ReadFile], texts())


@pytest.mark.parametrize("make", [_asked, Stream])
async def test_a_stream_that_is_not_async_is_told_so(make: Any) -> None:
    stream = make()

    with pytest.raises(TypeError, match=r"is not an async stream: await .* `decode\(tools, list\(stream\)\)`"):
        await decode_stream([ReadFile], stream)
    if make is _asked:
        await stream


def _reply(*calls: tuple[str, Any], stop: str | None = None, **message: Any) -> dict[str, Any]:
    reply = asks(*calls, text="So." if not calls else "")
    choice = reply["choices"][0]
    choice["message"] |= message
    choice["finish_reason"] = stop or choice["finish_reason"]
    return reply


_CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}


@pytest.mark.parametrize(
    ("reply", "goes_on"),
    [
        (_reply(), False),
        (_reply(stop="length"), False),
        (_reply(("add", {"a": 1}), stop="error"), False),
        (_reply(("add", {"a": 1})), True),
        (_reply(("ad", {"a": 1})), True),
        (_reply(("add", '{"a": '), stop="length"), True),
        (_reply(tool_calls=[_CUSTOM], stop="tool_calls"), True),
        ({**asks(format="anthropic", text="So."), "stop_reason": "pause_turn"}, True),
    ],
)
def test_a_round_is_true_while_the_model_has_more_to_say(reply: dict[str, Any], goes_on: bool) -> None:
    assert bool(decode([adding([])], reply)) is goes_on


def test_a_loop_that_asks_while_its_round_is_true_ends_with_the_answer() -> None:
    ran, replies = list[Any](), iter([_reply(("ad", {})), _reply(("add", {"a": 1})), _reply()])
    tools, messages = [adding(ran)], list[Any]()

    while round := decode(tools, next(replies), transcript=messages):
        round.run_sync(messages)

    assert (round.text, ran) == ("So.", [(1, 1)])


@pytest.mark.parametrize("option", ["run", "approver", "deps"])
def test_what_a_round_was_decoded_with_is_no_option_of_its_run(option: str) -> None:
    unknown: Any = {option: None}
    round = round_of([adding([])])

    with pytest.raises(TypeError, match=rf"round\.run\(\) has no option `{option}`\. Here it is `decode\(\.\.\., run="):
        round.run_sync([], **unknown)


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        (Run(), r"`decode\(\.\.\., run=\.\.\.\)`"),
        (Toolset([]), "tools=..."),
        ([], "tools=..."),
        ("pay ann", r"`session\.say\(text\)`"),
        ({}, "leave it out"),
    ],
    ids=["run", "toolset", "list", "text", "dict"],
)
async def test_what_is_no_function_does_not_execute_calls(given: Any, mend: str) -> None:
    round = decode(Toolset([]), {"choices": [{"message": {"role": "assistant", "content": "hi"}}]})

    with pytest.raises(TypeError, match=rf"`dispatch` of round\.run\(\) must be a function .*{mend}"):
        await round.run([], given)


def test_a_run_that_is_given_by_position_is_given_by_name() -> None:
    run: Any = Run()

    with pytest.raises(TypeError, match=r"decode\(\.\.\., run=run\)"):
        decode(Toolset([]), {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}, run)
    with pytest.raises(TypeError, match=r"`Session\(\.\.\., run=\.\.\.\)`"):
        Session(ScriptedModel()).run_sync(run)
