"""Payloads of events, which are made when a sink reads them: they say what was true when the event happened."""

import pickle
from typing import Annotated, Any

from toolcrib.calls import CallEvent, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.schema import Redacted
from toolcrib.tools import Tool, ez_tool


async def kept_events(tool: Tool[..., Any], arguments: str) -> list[CallEvent]:
    """Return the events of a call, of which nothing was read so far."""
    sink = ListSink()
    await Pipeline([tool], sinks=[sink]).run(ToolCall(tool.name, arguments, "c1"), Run(id="run_1"))
    return sink.events


async def test_a_result_that_changes_later_is_recorded_as_it_was() -> None:
    names: list[str] = []

    @ez_tool
    async def add(name: str) -> dict[str, Any]:
        names.append(name)
        return {"names": names}

    events = await kept_events(add, '{"name": "a"}')
    names.append("b")

    assert events[-1].record is not None
    assert events[-1].record.outcome["value"] == {"names": ["a"]}
    assert events[-1].data["outcome"]["value"] == {"names": ["a"]}


async def test_arguments_that_the_tool_edits_are_recorded_as_they_came() -> None:
    @ez_tool
    async def clear(names: list[str], most: int = 3) -> str:
        names.clear()
        return "done"

    events = await kept_events(clear, '{"names": ["a"]}')

    assert events[0].data == {"arguments": {"names": ["a"], "most": 3}, "came": {"arguments": {"names": ["a"]}}}
    assert events[1].data == {"arguments": {"names": ["a"], "most": 3}}


async def test_arguments_that_nobody_can_change_are_recorded_as_they_came() -> None:
    @ez_tool
    async def greet(name: str, times: int = 1) -> str:
        return name * times

    received, started, ended = await kept_events(greet, '{"name": "a"}')

    assert received.data == {"arguments": {"name": "a", "times": 1}, "came": {"arguments": {"name": "a"}}}
    assert started.data == {"arguments": {"name": "a", "times": 1}}
    assert ended.record is not None
    assert (ended.record.arguments, ended.record.requested) == ({"name": "a", "times": 1}, None)


async def test_an_event_that_was_not_read_holds_no_secret() -> None:
    @ez_tool
    async def log_in(name: str, key: Annotated[str, Redacted]) -> str:
        return name

    events = await kept_events(log_in, '{"name": "ann", "key": "hush-hush"}')

    assert b"hush-hush" not in pickle.dumps(events)
    assert "hush-hush" not in repr([event.to_dict() for event in events])


async def test_an_event_that_was_not_read_crosses_a_process() -> None:
    @ez_tool
    async def greet(name: str) -> list[str]:
        return [name]

    events = await kept_events(greet, '{"name": "a"}')
    again = pickle.loads(pickle.dumps(events))

    assert again == events
    assert again[-1].record.outcome["value"] == ["a"]


async def test_a_number_that_json_does_not_have_is_recorded_as_text() -> None:
    @ez_tool
    async def measure() -> dict[str, float]:
        return {"depth": float("nan")}

    events = await kept_events(measure, "{}")

    assert events[-1].data["outcome"]["value"] == {"depth": "NaN"}
