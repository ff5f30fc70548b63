"""Calls that start while their program still comes: which do, who gets what came of them, and what the record says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Ask, Grant, Reject, RunNormally
from toolcrib.code import EarlyToolkit, Toolkit
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Durability, Run
from toolcrib.provenance import Provenance
from toolcrib.record import ListSink
from toolcrib.rounds import Session
from toolcrib.sandbox import Sandbox
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

asked: list[str] = []
looked: list[str] = []
waits = "a city that is never found"


async def yes(request: ApprovalRequest) -> Grant:
    asked.append(request.tool)
    return request.grant("ann")


@ez_tool(effect="none")
async def find(city: str, days: int = 1) -> str:
    """Find a city."""
    looked.append(city)
    if city == waits:
        await asyncio.Event().wait()
    if city == "Atlantis":
        raise ValueError("it has sunk")
    return f"{city} {days}"


@ez_tool(effect="none", requires_approval=True)
def read_mail(folder: str) -> str:
    """Read mail."""
    looked.append(folder)
    return folder


@ez_tool
def order(product: str) -> str:
    """Order a product."""
    looked.append(product)
    return product


@ez_tool(effect="write")
def write(text: str) -> str:
    """Write a text."""
    looked.append(text)
    return text


@ez_tool(effect="none")
async def pages(book: str) -> AsyncIterator[str]:
    """Yield pages."""
    looked.append(book)
    yield book


TOOLS = [find, read_mail, order, write, pages]


@pytest.fixture(autouse=True)
def nothing_happened() -> None:
    asked.clear()
    looked.clear()


@pytest.fixture
def kit(engine: Sandbox) -> Toolkit:
    return Toolkit(TOOLS, sandbox=engine)


async def turns() -> None:
    """Let what has started go on."""
    for _ in range(20):
        await asyncio.sleep(0)


def states(early: EarlyToolkit) -> list[tuple[str, str]]:
    return [(call.tool, call.state) for call in early.calls]


# --- what starts, and who takes it


async def test_a_call_starts_before_its_program_has_come_and_is_made_once(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("a = find('Oslo', days=3)\nb = fi")
        await turns()
        before = list(looked)
        result = await early.execute_async("a = find('Oslo', days=3)\nb = find('Rome')\n[a, b]", run)

    assert before == ["Oslo"]
    assert (result.return_value, looked) == (["Oslo 3", "Rome 1"], ["Oslo", "Rome"])
    assert states(early) == [("find", "taken")]
    assert result.tool_calls[0]["id"] == early.calls[0].id


async def test_the_program_waits_for_a_call_that_still_runs(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("a = find('Oslo')\n")
        result = await early.execute_async("a = find('Oslo')\na", run)

    assert (result.return_value, looked) == ("Oslo 1", ["Oslo"])


async def test_an_outcome_is_taken_once(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("a = find('Oslo')\n")
        result = await early.execute_async("a = find('Oslo')\n[a, find('Oslo'), find('Oslo')]", run)

    assert looked == ["Oslo"] * 3
    assert len({call["id"] for call in result.tool_calls}) == 3


@pytest.mark.parametrize("other", ["find('Oslo', 2)", "find('Oslo', days=1)", "find('Rome')"])
async def test_a_call_with_other_arguments_is_made(kit: Toolkit, other: str) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("x = find('Oslo')\n")
        result = await early.execute_async(f"x = find('Oslo')\n{other}", run)

    assert len(looked) == len(result.tool_calls) == 2


async def test_a_failure_is_taken_too(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("find('Atlantis')\n")
        result = await early.execute_async("find('Atlantis')\n", run)

    assert "it has sunk" in str(result.error)
    assert looked == ["Atlantis"]


@pytest.mark.parametrize(
    "begin", ["order('tea')", "write('x')", "read_mail('in')", "pages('b')", "find = order\nfind('x')", "unknown('x')"]
)
async def test_what_has_an_effect_or_needs_a_person_does_not_start(kit: Toolkit, begin: str) -> None:
    async with EarlyToolkit(kit, Run(approver=yes)) as early:
        early.feed(f"{begin}\nfind('late')\n")
        await turns()

    assert (early.calls, looked, asked) == ([], [], [])


async def test_a_view_that_needs_approval_does_not_start() -> None:
    kit = Toolkit(Toolset([find]).with_approval(True))
    async with EarlyToolkit(kit, Run(approver=yes)) as early:
        early.feed("find('Oslo')\n")
        await turns()

    assert (early.calls, looked, asked) == ([], [], [])


async def test_where_a_hook_asks_nothing_runs_before_the_program(engine: Sandbox) -> None:
    hooks = HookSet()

    @hooks.register
    async def ask(call: Any, input: Any) -> Ask:
        return Ask("please")

    run = Run(approver=yes, limits=CallLimits(total=1))
    async with EarlyToolkit(Toolkit(TOOLS, sandbox=engine, hooks=hooks), run) as early:
        early.feed("find('Oslo')\n")
        await turns()
        before = (list(looked), list(asked))
        result = await early.execute_async("find('Oslo')", run)

    assert before == ([], [])
    assert (result.return_value, looked, asked) == ("Oslo 1", ["Oslo"], ["find"])
    assert states(early) == [("find", "taken")]
    assert [call["id"] for call in result.tool_calls] == [early.calls[0].id]


async def test_a_call_that_a_hook_asks_about_is_the_one_that_waits(engine: Sandbox) -> None:
    hooks, run, store = HookSet(), Run(), MemoryApprovalStore()

    @hooks.register
    async def ask(call: Any, input: Any) -> Ask:
        return Ask("please")

    async with EarlyToolkit(Toolkit([find], sandbox=engine, hooks=hooks), run) as early:
        early.feed("find('Oslo')\n")
        await turns()
        result = await early.execute_async("find('Oslo')", run.view(approvals=store))

    [suspended] = result.suspended_calls
    assert [entry.request.id for entry in await store.list(pending=True)] == [suspended.request.id]
    assert suspended.request.call_id == early.calls[0].id
    assert result.paused is not None
    again = await early.resume_async(result.paused, run.view(approvals=store), grants=[suspended.grant("ann")])
    assert (again.return_value, looked) == ("Oslo 1", ["Oslo"])


async def test_a_hook_that_rejects_is_asked_once(engine: Sandbox) -> None:
    hooks, seen = HookSet(), list[str]()

    @hooks.register
    async def decide(call: Any, input: Any) -> Reject | RunNormally:
        seen.append(call.name)
        return Reject("no")

    run = Run()
    async with EarlyToolkit(Toolkit(TOOLS, sandbox=engine, hooks=hooks), run) as early:
        early.feed("find('Oslo')\n")
        result = await early.execute_async("find('Oslo')", run)

    assert "PermissionError" in str(result.error)
    assert (seen, looked) == (["find"], [])


async def test_so_many_of_one_program_start(kit: Toolkit) -> None:
    async with EarlyToolkit(kit, Run(), most=2) as early:
        early.feed("".join(f"find('{n}')\n" for n in range(5)))
        await turns()

    assert looked == ["0", "1"]


# --- what was not asked for


async def test_what_no_program_asks_for_is_cancelled_and_said(kit: Toolkit) -> None:
    run = Run(sinks=[sink := ListSink()])
    async with EarlyToolkit(kit, run) as early:
        early.feed(f"find('Oslo')\nfind({waits!r})\n")
        await turns()
        result = await early.execute_async(f"find('Oslo')\nfind({waits!r})\n".replace("find('Oslo')", "1 / 0"), run)
        during = states(early)

    assert "ZeroDivisionError" in str(result.error)
    assert during == [("find", "running"), ("find", "running")]  # of another program than the one that ran
    assert states(early) == [("find", "unused"), ("find", "cancelled")]
    assert [(record.entry, record.outcome["kind"]) for record in sink.records if record.tool == "find"] == [
        ("early", "completed"),
        ("early", "cancelled"),
    ]


async def test_a_program_that_fails_first_leaves_the_rest(kit: Toolkit) -> None:
    run = Run()
    code = f"find('Atlantis')\nfind({waits!r})\n"
    async with EarlyToolkit(kit, run) as early:
        early.feed(code)
        await turns()
        await early.execute_async(code, run)

        assert states(early) == [("find", "taken"), ("find", "cancelled")]


async def test_a_program_that_never_comes_whole_loses_nothing(kit: Toolkit) -> None:
    run = Run(limits=CallLimits(total=2))
    async with EarlyToolkit(kit, run) as early:
        early.feed("find('Oslo')\nfin")
        await turns()
    result = await kit.execute_async("[find('Rome'), find('Bern')]", run)

    assert states(early) == [("find", "unused")]
    assert "may make 2 calls" in str(result.error)  # it ran, and so it counted


async def test_another_program_in_its_place_drops_it(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed(f"find({waits!r})\n")
        early.feed("a = find('Rome')\n")
        result = await early.execute_async("a = find('Rome')\na", run)

    assert result.return_value == "Rome 1"
    assert states(early) == [("find", "cancelled"), ("find", "taken")]


async def test_the_record_says_which_were_taken(kit: Toolkit) -> None:
    class Activities(ListSink):
        def __init__(self) -> None:
            super().__init__()
            self.closed: list[Any] = []

        def emit_activity(self, event: Any) -> None:
            if event.kind == "closed" and event.name == "early calls":
                self.closed.append(event.data)

    run = Run(sinks=[sink := Activities()])
    code = "find('Oslo')\nfind('Rome')\n"
    async with EarlyToolkit(kit, run) as early:
        early.feed(code)
        await turns()
        await early.execute_async(code.replace("find('Rome')", "find('Bern')"), run)
        assert sink.closed == []  # what was read of it is no beginning of that program
        await early.execute_async(code, run)

    (data,) = sink.closed
    assert data["taken"] == [call.id for call in early.calls]


# --- who may take it


async def test_another_run_takes_nothing(kit: Toolkit) -> None:
    async with EarlyToolkit(kit, run := Run(principal="ann")) as early:
        early.feed("find('Oslo')\n")
        await turns()
        await early.execute_async("find('Oslo')\n", Run(principal="ann"))
        await early.execute_async("find('Oslo')\n", Run(principal="bob"))
        await early.execute_async("find('Oslo')\n", run.view(principal="bob"))

    assert looked == ["Oslo"] * 4
    assert states(early) == [("find", "unused")]


async def test_the_toolkit_itself_is_as_it_was(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        early.feed("find('Oslo')\n")
        await turns()
        await kit.execute_async("find('Oslo')\n", run)

    assert looked == ["Oslo"] * 2


class Journal:
    async def begin(self, call: Any) -> None:
        """Keep nothing."""


@pytest.mark.parametrize("options", [{"features": [Provenance()]}, {"durability": Durability(recorder=Journal())}])
async def test_in_a_run_with_a_feature_or_a_journal_nothing_starts(kit: Toolkit, options: dict[str, Any]) -> None:
    async with EarlyToolkit(kit, Run(**options)) as early:
        early.feed("find('Oslo')\n")
        await turns()

    assert (early.calls, looked) == ([], [])


async def test_outside_of_its_block_nothing_starts(kit: Toolkit) -> None:
    early = EarlyToolkit(kit, Run())

    with pytest.raises(RuntimeError, match="async with"):
        early.feed("find('Oslo')\n")


# --- with a model


class Replies:
    """A model that streams a program in pieces, and answers then."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces, self.seen = pieces, list[list[str]]()

    async def reply(self, request: Any) -> AsyncIterator[dict[str, Any]]:
        if self.seen:
            yield {"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]}
            return
        call = {"index": 0, "id": "c1", "function": {"name": "run_python", "arguments": '{"code": "'}}
        yield {"choices": [{"delta": {"tool_calls": [call]}}]}
        for piece in self.pieces:
            yield {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]}
            await turns()
            self.seen.append(list(looked))
        yield {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}


async def test_a_session_starts_calls_while_the_model_still_writes(kit: Toolkit) -> None:
    run, model = Run(), Replies(["a = find('Os", "lo')\\n", "b = find('Rome')\\nprint(a, b)", '"}'])
    async with EarlyToolkit(kit, run) as early:
        session = Session(model, tools=[early.as_tool()], run=run)
        session.say("Find them.")
        answer = await session.run(on_call=early.on_call)

    assert answer.result == "done"
    assert model.seen == [[], ["Oslo"], ["Oslo", "Rome"], ["Oslo", "Rome"]]
    assert looked == ["Oslo", "Rome"]
    assert states(early) == [("find", "taken"), ("find", "taken")]


async def test_a_sync_listener_in_another_thread_is_heard(kit: Toolkit) -> None:
    run = Run()
    async with EarlyToolkit(kit, run) as early:
        await asyncio.to_thread(early.feed, "find('Oslo')\n")
        result = await early.execute_async("find('Oslo')\n", run)

    assert (result.return_value, looked) == ("Oslo 1", ["Oslo"])
