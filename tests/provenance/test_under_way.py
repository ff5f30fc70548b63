"""Calls that have not ended: what is written meanwhile they may take, so that it is asked about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolcrib.calls import Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Origin, Provenance
from toolcrib.rounds import decode
from toolcrib.testing import wire_reply
from toolcrib.tools import Effect, ez_tool

SAID = "Read my mail, draft it for Ann, then send drafts, run jobs and mail Ann or Bo; draft 71 as well"
DRAFT: dict[str, Any] = {"to": "eve@evil.com", "about": "Ann"}


def memory() -> Memory:
    made = Memory()
    made.hear(SAID)
    made.read("read_mail", "c1", {}, "A riddle: do as it says", "untrusted")
    return made


def write(made: Memory, **arguments: Any) -> list[str]:
    made.write(Origin("untrusted", "create_draft", "c9"), arguments, frozenset(), "create")
    return [question.kind for question in made.judge_under_way("create_draft", "c9")]


@pytest.mark.parametrize(
    ("tool", "effect", "arguments"),
    [
        ("send_drafts", "send", {}),
        ("send_drafts", "send", {"all": True}),
        ("run_jobs", "execute", {"command": "make"}),
        ("send", "send", {"to": "Ann"}),
        ("send", "share", {"to": ["Bo", "Ann"]}),
        ("send_draft", "send", {"draft_id": 71}),
    ],
)
def test_what_a_call_that_has_not_ended_may_take_is_asked_about(
    tool: str, effect: Effect, arguments: dict[str, Any]
) -> None:
    made = memory()
    made.begin(tool, "c8", effect, arguments)
    meanwhile = write(made, **DRAFT, draft_id=71)
    made.end(tool, "c8")

    assert meanwhile == ["bound"]
    assert write(made, **DRAFT, draft_id=71) == []


@pytest.mark.parametrize("number", [0, 500, 1_500])
def test_of_more_calls_than_are_kept_none_is_forgotten(number: int) -> None:
    made = memory()
    calls: list[tuple[str, Effect, dict[str, Any]]] = [("send", "send", {"to": "Bo"})] * 1_500
    calls.insert(number, ("run_jobs", "execute", {}))

    for count, (tool, effect, arguments) in enumerate(calls):
        made.begin(tool, f"d{count}", effect, arguments)

    assert set(write(made, **DRAFT)) == {"bound"}


@pytest.mark.parametrize(
    ("tool", "effect", "arguments"),
    [
        ("send", "send", {"to": "Bo"}),
        ("send", "send", {"to": "bob@corp.com"}),
        ("add_note", "create", {}),
        ("close_ticket", "delete", {"ticket": 71}),
    ],
)
def test_what_such_a_call_does_not_take_is_not_asked_about(
    tool: str, effect: Effect, arguments: dict[str, Any]
) -> None:
    made = memory()
    made.begin(tool, "c8", effect, arguments)

    assert write(made, **DRAFT, draft_id=71) == []


def test_known_values_are_not_asked_about_while_a_call_has_not_ended() -> None:
    made = memory()
    made.begin("send_drafts", "c8", "send", {})

    assert write(made, to="Bo", about="Ann") == []


# --- over the pipeline


class Desk:
    """Tools of a desk, of which one waits until it is let go on."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()

        @ez_tool(effect="none", source="untrusted")
        async def read_mail() -> str:
            """Read."""
            return "A riddle: do as it says"

        @ez_tool(effect="create", source="trusted")
        async def create_draft(to: str, about: str) -> str:
            """Create a draft."""
            return "done"

        @ez_tool(effect="send", source="trusted")
        async def send_drafts() -> str:
            """Send the drafts."""
            self.has_begun.set()
            await self.may_end.wait()
            return "sent"

        @ez_tool(effect="send", source="trusted", requires_approval=True)
        async def send_all() -> str:
            """Send all."""
            return "sent"

        self.pipeline = Pipeline([read_mail, create_draft, send_drafts, send_all])
        self.run = Run(features=[Provenance()])
        self.run.add_user_message(f"{SAID}. Then send all")

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.pipeline.run(ToolCall(name, arguments), self.run)


async def test_a_draft_is_asked_about_while_drafts_are_sent() -> None:
    desk = Desk()
    await desk.call("read_mail")
    sending = asyncio.create_task(desk.call("send_drafts"))
    await desk.has_begun.wait()

    meanwhile = await desk.call("create_draft", **DRAFT)
    desk.may_end.set()
    await sending

    assert isinstance(meanwhile, Suspended)
    assert "`send_drafts`, which has not ended, may take it" in meanwhile.request.reason


async def test_a_draft_is_asked_about_while_a_call_that_takes_it_waits_for_an_approval() -> None:
    desk = Desk()
    await desk.call("read_mail")
    waiting = await desk.call("send_all")

    meanwhile = await desk.call("create_draft", **DRAFT)
    await desk.pipeline.run(waiting, desk.run, grant=waiting.request.grant())

    assert (waiting.kind, meanwhile.kind) == ("suspended", "suspended")
    assert (await desk.call("create_draft", to="mallory@evil.com", about="Ann")).kind == "completed"


@pytest.mark.parametrize("is_first", [True, False])
async def test_one_of_two_calls_in_one_reply_is_asked_about_in_either_order(is_first: bool) -> None:
    desk = Desk()
    await desk.call("read_mail")
    calls = [ToolCall("send_drafts", {}, "s1"), ToolCall("create_draft", DRAFT, "s2")]
    reply = wire_reply("openai", calls if is_first else calls[::-1])

    plan = await decode(desk.pipeline, reply, format="openai", run=desk.run).apply_hooks()

    assert len(plan.suspended) == 1
