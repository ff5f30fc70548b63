"""Arguments that are nearly JSON are read where the host asks for it, and never those of a call that was cut."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.replies import Asked, pieces
from tests.rounds.replies import FORMATS, asks
from toolcrib.formats import FINISHED, PROVIDERS
from toolcrib.formats._nearly_json import repaired_arguments
from toolcrib.pipeline import Run
from toolcrib.record import ListSink
from toolcrib.rounds import Session, ToolRound, WireFormat, decode
from toolcrib.testing import ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

NEARLY = {
    "{'a': 1}": {"a": 1},
    '{"a": 1,}': {"a": 1},
    '{"a": [1, 2, ], }': {"a": [1, 2]},
    "{'a': True, 'b': False, 'c': None}": {"a": True, "b": False, "c": None},
    """{'a': 'it\\'s "so"', "b": "it's, ]True\\u00e9"}""": {"a": 'it\'s "so"', "b": "it's, ]True\u00e9"},
    """{'a': "None, }", 'b': 'True,]'}""": {"a": "None, }", "b": "True,]"},
    "{'a': {'b': [{'c': None},]},}": {"a": {"b": [{"c": None}]}},
    "{}\n": None,
}
REFUSED = [
    "", "{", "{'a': 1", "{'a': 'x", "{'a': ['x',", "{'a': 'it's'}", "{'a': 1} {'b': 2}", "{,}", "[1,]",
    "{'a': [,]}", "{'a': 1,,}",
    "{a: 1}", "{'a': 1, 'a': 2}", "{'a': NaN}", "{'a': (1, 2)}", "{'a': 'x' 'y'}", "{'a': '\\x41'}", "{'a': 'x\ny'}",
    "{None: 1}",
    "{'a': __import__('os')}", '{"a": "x\', \'b\': 1}', "{'a': " * 5000 + "}" * 5000, "'" * 99_999, '\\"' * 99_999,
]  # fmt: skip
TEXTS = [format for format in FORMATS if format not in ("gemini", "ollama")]  # the others bring objects


def tools(ran: list[Any]) -> Toolset:
    @ez_tool
    def note(a: Any, b: Any = None) -> str:
        """Note something."""
        ran.append((a, b))
        return "noted"

    return Toolset([note])


@pytest.mark.parametrize(("text", "value"), NEARLY.items())
def test_what_is_nearly_json_is_read(text: str, value: Any) -> None:
    made = repaired_arguments(text)

    assert (None if made is None else json.loads(made)) == value


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_nothing_is_guessed(text: str) -> None:
    assert repaired_arguments(text) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", categories=("L", "P", "Z", "N"))),
    lambda parts: st.lists(parts) | st.dictionaries(st.text("abc'\"\\, }]"), parts),
)


@pytest.mark.systems  # a long search
@given(st.dictionaries(st.text("abc'\"", min_size=1), VALUES, min_size=1), st.data())
def test_python_s_own_writing_is_read_and_its_beginning_never(value: dict[str, Any], data: st.DataObject) -> None:
    text = repr(value)
    made = repaired_arguments(text)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]

    assert repaired_arguments(cut) is None
    if made is not None:
        assert json.loads(made) == value
    elif "\\x" not in text and "\\U" not in text:
        assert json.loads(text) == value


def nearly(part: Any) -> Any:
    """Return chunks of a stream with single quotes in the arguments."""
    if isinstance(part, list):
        return [nearly(one) for one in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    named = cast("dict[str, Any]", part)
    keys = ("arguments", "partial_json", "input", "delta")
    return {
        key: one.replace('"', "'") if key in keys and isinstance(one, str) else nearly(one)
        for key, one in named.items()
    }


def stream(format: WireFormat) -> list[Any]:
    """Return the chunks of a call whose arguments came in single quotes."""
    return nearly(pieces(format, "", [Asked("call_ABCDEFG01", "note", {"a": "x", "b": [2]})]))


@pytest.mark.parametrize("format", TEXTS)
async def test_arguments_are_repaired_where_the_host_asks_for_it(format: WireFormat) -> None:
    ran, sink = list[Any](), ListSink()
    round = decode(tools(ran), stream(format), format=format, run=Run(sinks=(sink,)), repair=True)
    transcript: list[Any] = PROVIDERS[format].user("Note it.")
    await round.run(transcript)

    [call] = [call for item in transcript for call in PROVIDERS[format].calls_of(item)]
    sent = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    [received] = [event for event in sink.events if event.kind == "received"]
    assert (ran, sent) == ([("x", [2])], {"a": "x", "b": [2]})
    assert received.data["came"] == {"caller": "direct", "repaired": True}
    assert any("`note`" in problem and "repaired" in problem for problem in round.problems)
    assert PROVIDERS[format].check(transcript) == []


@pytest.mark.parametrize("format", TEXTS)
async def test_a_repaired_round_goes_on_in_another_process(format: WireFormat) -> None:
    ran = list[Any]()
    round = decode(tools(ran), stream(format), format=format, repair=True)
    restored = await ToolRound.from_json(tools(ran), round.to_json())
    await restored.run(PROVIDERS[format].user("Note it."))

    assert ran == [("x", [2])]


@pytest.mark.parametrize("format", TEXTS)
async def test_nothing_is_repaired_unless_the_host_asks_for_it(format: WireFormat) -> None:
    ran = list[Any]()
    round = decode(tools(ran), stream(format), format=format)
    await round.run(PROVIDERS[format].user("Note it."))

    assert (ran, len(round.recoverable_issues)) == ([], 1)


@pytest.mark.parametrize("format", FORMATS)
async def test_arguments_in_order_are_read_as_before(format: WireFormat) -> None:
    chunks = pieces(format, "", [Asked("call_ABCDEFG01", "note", {"a": "it's, ]", "b": True})])

    repairing, plain = (decode(tools([]), chunks, format=format, repair=repair) for repair in (True, False))

    assert (repairing.items, repairing.problems) == (plain.items, plain.problems)
    assert [call.metadata.arguments for call in repairing.tool_calls] == [
        call.metadata.arguments for call in plain.tool_calls
    ]


@pytest.mark.parametrize("format", TEXTS)
async def test_a_stream_that_was_cut_is_never_repaired(format: WireFormat) -> None:
    ran, chunks = list[Any](), stream(format)
    for end in range(1, len(chunks)):
        round = decode(tools(ran), chunks[:end], format=format, repair=True)
        if round.stop_kind in FINISHED:  # the last chunks say nothing more
            continue
        await round.run(PROVIDERS[format].user("Note it."))

    assert ran == []


@pytest.mark.parametrize("format", ["openai", "openai_responses", "mistral"])
@pytest.mark.parametrize("missing", [0, 1, 2, 5])
async def test_arguments_whose_end_is_missing_are_never_repaired(format: WireFormat, missing: int) -> None:
    raw = "{'a': 'x', 'b': [2]}"
    reply = asks(("note", raw[: len(raw) - missing]), format=format)

    round = decode(tools([]), reply, format=format, repair=True)

    assert len(round.tool_calls) == (not missing)


def test_a_free_text_that_reads_like_the_arguments_stays() -> None:
    text = "{'a': 1,}"
    call = {"type": "function_call", "call_id": "c1", "name": "note", "arguments": text, "status": "completed"}
    custom = {"type": "custom_tool_call", "call_id": "c2", "name": "script", "input": text}
    chat = [
        {"id": "c1", "type": "function", "function": {"name": "note", "arguments": text}},
        {"id": "c2", "type": "custom", "custom": {"name": "script", "input": text}},
    ]

    responses = {"object": "response", "status": "completed", "output": [call, custom]}
    message = {"role": "assistant", "tool_calls": chat}
    whole = {"choices": [{"finish_reason": "tool_calls", "message": message}]}
    first = decode(tools([]), responses, format="openai_responses", repair=True)
    second = decode(tools([]), whole, format="openai", repair=True)

    assert (first.items[0]["arguments"], first.items[1]["input"]) == ('{"a": 1}', text)
    [made] = second.items
    assert made["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'
    assert made["tool_calls"][1]["custom"]["input"] == text


async def test_a_session_repairs_where_it_is_asked_to() -> None:
    ran = list[Any]()
    model = ScriptedModel(asks(("note", "{'a': True}")), "Noted.")
    await Session(model, tools=tools(ran), repair=True).say("Note it.").run()

    assert ran == [(True, None)]
