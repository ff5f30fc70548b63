"""The same words in every framework: `guard`, `approval_requests`, `answers`, `as_tools`, `from_tools`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frameworks.booking import booking
from tests.frameworks.chats import CHATS, Chat
from toolcrib.approvals import MemoryApprovalStore, pending_requests
from toolcrib.calls import Completed, Failed, Reject, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

pytestmark = pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked")  # Claude's guard makes it so

OSLO, ROME = ("book", {"city": "Oslo"}), ("book", {"city": "Rome"})
LOOK = ("look", {"city": "Bonn"})
DELETE = ("delete", {"path": "x"})

each_framework = pytest.mark.parametrize("chat", CHATS.values(), ids=[*CHATS])
VERBS = ("guard", "approval_requests", "answers", "as_tools", "from_tools")


@ez_tool
async def look(city: str) -> str:
    """Look a city up."""
    return f"looked {city} up"


def deleting(ran: list[str]) -> Any:
    """Return a function that notes what it was called with."""

    def delete(path: str) -> str:
        """Delete a file.

        Args:
            path: Which.
        """
        ran.append(path)
        return f"deleted {path}"

    return delete


@each_framework
def test_an_adapter_has_the_words_of_all_others(chat: type[Chat]) -> None:
    assert {*VERBS} <= {*chat.adapter.__all__}


@each_framework
async def test_two_calls_wait_beside_one_that_runs_and_are_answered_at_once(chat: type[Chat]) -> None:
    ran: list[str] = []
    talk = chat([OSLO, LOOK, ROME], ours=[booking(ran, requires_approval=True), look])

    before = await talk.say()
    oslo, rome = sorted(talk.asked, key=lambda request: request.arguments["city"])
    after = await talk.answer(oslo.deny(message="too far", by="ann"), rome.grant("ann"))

    assert (oslo.arguments, rome.arguments) == ({"city": "Oslo"}, {"city": "Rome"})
    assert (ran, talk.asked) == (["Rome"], [])
    assert "looked Bonn up" in before + after
    assert "too far" in after
    assert "booked Rome" in after


@each_framework
async def test_a_request_that_the_store_has_an_answer_to_is_not_pending(chat: type[Chat]) -> None:
    store = MemoryApprovalStore()
    tools = [booking([], requires_approval=True)]
    talk = chat([OSLO, ROME], ours=tools, run=lambda about: Run(approvals=store))
    await talk.say()
    oslo, rome = sorted(talk.asked, key=lambda request: request.arguments["city"])

    before = await pending_requests([oslo, rome], store)
    await store.answer(oslo.grant("ann"))

    assert before == [oslo, rome]
    assert await pending_requests([oslo, rome], store) == [rome]


@each_framework
async def test_an_answer_to_nothing_that_waits_is_an_error(chat: type[Chat]) -> None:
    talk, other = [chat([OSLO], ours=[booking([], requires_approval=True)]) for _ in range(2)]
    await talk.say()
    await other.say()

    with pytest.raises(ApprovalError):
        await talk.answer(other.asked[0].grant("ann"))


@each_framework
async def test_a_tool_that_fails_and_one_that_is_rejected_are_told_in_their_words(chat: type[Chat]) -> None:
    hooks = HookSet()

    @ez_tool
    async def broken(city: str) -> str:
        """Break."""
        raise RuntimeError("no rooms")

    @hooks.on("look")
    async def decide(call: Any, given: Any) -> Any:
        return Reject("not today")

    talk = chat([LOOK, ("broken", {"city": "Bonn"})], ours=Toolset([broken, look], hooks=hooks))

    said = await talk.say()

    assert "not today" in said
    assert "no rooms" in said


@each_framework
async def test_calls_of_one_run_of_an_agent_are_counted_together_and_recorded(chat: type[Chat]) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    tools = [booking(ran)]
    talk = chat([OSLO], [ROME], ours=tools, run=lambda about: Run(limits=CallLimits(total=1)), sinks=[sink])

    await talk.say()

    assert ran == ["Oslo"]
    assert [record.outcome["kind"] for record in sink.records] == ["completed", "rejected"]


@each_framework
@pytest.mark.parametrize("says_yes", [True, False], ids=["yes", "no"])
async def test_a_guard_asks_about_the_tools_that_an_agent_has(chat: type[Chat], says_yes: bool) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    talk = chat([DELETE], theirs=[deleting(ran)], policy=GuardPolicy(approve=["delete"], sinks=(sink,)))

    await talk.say()
    [request] = talk.asked
    done = await talk.answer(request.grant("ann") if says_yes else request.deny(message="keep it", by="ann"))

    assert (request.tool, request.arguments) == ("delete", {"path": "x"})
    assert (ran, talk.asked) == (["x"] if says_yes else [], [])
    assert ("deleted x" if says_yes else "keep it") in done
    assert sink.records[-1].approval["approver"] == "ann"  # type: ignore[index]


@each_framework
async def test_a_guard_counts_calls_of_all_tools_and_leaves_what_it_is_told_to(chat: type[Chat]) -> None:
    ran: list[str] = []
    left: list[str] = []

    def keep(path: str) -> str:
        """Keep a file.

        Args:
            path: Which.
        """
        left.append(path)
        return "kept"

    policy = GuardPolicy(run=lambda about: Run(limits=CallLimits(total=1)), leave=["keep"])
    keeping = ("keep", {"path": "y"})
    talk = chat([DELETE], [DELETE], [keeping], [keeping], theirs=[deleting(ran), keep], policy=policy)

    await talk.say()

    assert (ran, left) == (["x"], ["y", "y"])


@each_framework
async def test_their_tools_are_members_of_a_toolset_and_of_programs(chat: type[Chat]) -> None:
    ran: list[str] = []
    sink = ListSink()
    theirs = chat.adapter.from_tools([chat.tool(deleting(ran))])

    async with Toolset(theirs).with_approval().open() as opened:
        pipeline, run = Pipeline(opened, sinks=[sink]), Run()
        waiting = await pipeline.run(ToolCall("delete", {"path": "x"}), run)
        assert isinstance(waiting, Suspended)
        done = await pipeline.run(waiting, run, grant=waiting.request.grant("ann"))
        misread = await pipeline.run(ToolCall("delete", {"file": "x"}), run)
    async with Toolset(chat.adapter.from_tools([chat.tool(deleting(ran))])).open() as opened:
        program = await Toolkit(opened).execute_async("delete(path='y')")

    assert isinstance(done, Completed)
    assert isinstance(misread, Failed)
    assert (done.value, program.return_value, ran) == ("deleted x", "deleted y", ["x", "y"])


@each_framework
async def test_a_guard_takes_a_policy_and_nothing_else(chat: type[Chat]) -> None:
    policy: Any = {"approve": ["delete"]}

    with pytest.raises(
        TypeError, match=r"a guard has its gates from a GuardPolicy\(approve=\[\.\.\.\]\), and not from {"
    ):
        await chat([DELETE], theirs=[deleting([])], policy=policy).say()
