"""Calls of tools that are offered deferred: OpenAI puts each into a namespace of its own name, and the tool runs.

Recorded replies of OpenAI's show it, in tests/cassettes/test_tool_search of pydantic/pydantic-ai.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.formats.replies import NAMES, Asked, pieces, sdk_accepts, whole
from tests.rounds.endings import MODES, begins
from toolcrib.formats import ProviderOptions, WireFormat
from toolcrib.rounds import CallProgress, Finished, Session, ToolRound, Transcript, decode, decode_stream
from toolcrib.testing import ScriptedModel
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

SEARCH = {"type": "tool_search_call", "id": "t", "execution": "server", "arguments": {}, "status": "completed"}
FOUND = {"type": "tool_search_output", "id": "u", "execution": "server", "tools": list[Any](), "status": "completed"}
FUNCTION = {
    "type": "function_call",
    "id": "f",
    "call_id": "c",
    "arguments": '{"sql": "SELECT 1"}',
    "status": "completed",
}
CUSTOM = {"type": "custom_tool_call", "id": "f", "call_id": "c", "input": "SELECT 1"}
DEFERRING = ("openai_responses", "anthropic", "gemini_interactions")
CALLS = {"function": FUNCTION, "custom": CUSTOM}
each_kind = pytest.mark.parametrize("kind", CALLS)
each_mode = pytest.mark.parametrize("mode", MODES)


def querying(ran: list[str], kind: str, deferred: bool | None = True) -> Tool[..., Any]:
    @ez_tool(provider=ProviderOptions(defer_loading=deferred, free_text=True if kind == "custom" else None))
    def query(sql: str) -> str:
        """Run a query."""
        ran.append(sql)
        return "one row"

    return query


def reply(kind: str, mode: str = "whole", name: str = "query", namespace: str = "query") -> Any:
    output = [SEARCH, FOUND, {**CALLS[kind], "name": name, "namespace": namespace}]
    made = {"id": "r", "object": "response", "status": "completed", "output": output}
    if mode == "whole":
        return made
    events = ("added", "done")
    pieces = [
        {"type": f"response.output_item.{event}", "output_index": at, "item": item}
        for at, item in enumerate(output)
        for event in events
    ]
    return [*pieces, {"type": "response.completed", "response": made}]


@each_mode
@each_kind
async def test_a_deferred_tool_runs_and_is_answered_in_its_namespace(kind: str, mode: str) -> None:
    ran: list[str] = []
    model = ScriptedModel(reply(kind, mode), "One row.")
    session = Session(model, tools=[querying(ran, kind)], format="openai_responses").say("Go.")

    done = await session.run()

    assert isinstance(done, Finished)
    assert (done.result, ran, session.transcript.check()) == ("One row.", ["SELECT 1"], [])
    assert session.transcript[3]["namespace"] == "query"
    sdk_accepts("openai_responses", session.transcript)


@each_kind
async def test_a_deferred_tool_runs_in_a_round_that_was_saved(kind: str) -> None:
    ran: list[str] = []
    tools, transcript = [querying(ran, kind)], begins("openai_responses")
    saved = decode(tools, reply(kind)).to_json()

    await (await ToolRound.from_json(tools, saved)).run(transcript)

    assert (ran, Transcript(transcript, "openai_responses").check()) == (["SELECT 1"], [])


@each_kind
async def test_a_call_of_a_deferred_tool_is_shown_while_it_comes(kind: str) -> None:
    shown: list[CallProgress] = []

    async def stream() -> AsyncIterator[Any]:
        for event in reply(kind, "streamed"):
            yield event

    await decode_stream([querying([], kind)], stream(), on_call=shown.append)

    assert [(one.name, one.arguments) for one in shown] == 2 * [("query", {"sql": "SELECT 1"})]


def made(format: WireFormat, mode: str) -> Any:
    if format == "openai_responses":
        return reply("function", mode)
    asked = [Asked("c12345678", "query", {"sql": "SELECT 1"})]
    return whole(format, "", asked) if mode == "whole" else pieces(format, "", asked)


@each_mode
@pytest.mark.parametrize("own", [True, False, None])
@pytest.mark.parametrize("format", NAMES)
async def test_a_tool_that_one_request_defers_runs_in_every_format(
    format: WireFormat, mode: str, own: bool | None
) -> None:
    ran: list[str] = []
    tools, transcript = Toolset([querying(ran, "function", own)]), begins(format)
    defined = tools.definitions(format=format, options={"query": ProviderOptions(defer_loading=True)})

    round = decode(tools, made(format, mode), format=format)
    await round.run(transcript)

    assert ("defer_loading" in str(defined)) is (format in DEFERRING)
    assert (ran, round.unhandled) == (["SELECT 1"], [])
    assert Transcript(transcript, format).check() == []


@each_mode
@each_kind
@pytest.mark.parametrize(
    ("deferred", "name", "namespace"),
    [(None, "query", "crm"), (True, "query", "crm"), (True, "others", "others"), (True, "query", "others")],
)
def test_a_call_in_another_namespace_is_the_host_s(
    kind: str, mode: str, deferred: bool | None, name: str, namespace: str
) -> None:
    round = decode([querying([], kind, deferred)], reply(kind, mode, name, namespace))

    assert (round.tool_calls, round.recoverable_issues) == ([], [])
    assert [(one.kind, one.name) for one in round.unhandled] == [(CALLS[kind]["type"], name)]


@pytest.mark.parametrize("format", ["openai_responses", "gemini_interactions"])
def test_the_search_is_offered_with_deferred_tools_and_with_no_others(format: WireFormat) -> None:
    deferred, plain = Toolset([querying([], "function")]), Toolset([querying([], "function", None)])

    assert deferred.definitions(format=format)[1:] == [{"type": "tool_search"}]
    assert len(plain.definitions(format=format)) == 1
