"""Taking up a program that waits for a person: with answers, without, by another toolkit, too late."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.code.scripts import Asks, ScriptSandbox
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.calls import CallEvent
from toolcrib.code import ExecutionResult, PausedProgram, SandboxLimits, Toolkit
from toolcrib.errors import ApprovalError, PausedProgramError, ReplayDiverged
from toolcrib.pipeline import CallLimits, Durability, Run
from toolcrib.sandbox import Sandbox
from toolcrib.testing import FakeSandbox
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

KEY = b"a key of more than sixteen bytes"
SHORT = SandboxLimits(program_time=0.1, sleep_time=0)


class Desk:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self, **options: Any) -> list[Tool[..., Any]]:
        @ez_tool
        async def find(city: str) -> int:
            self.done.append(f"find {city}")
            return len(city)

        @ez_tool(requires_approval=True, **options)
        async def book(city: str, seats: int = 1) -> str:
            self.done.append(f"book {city} {seats}")
            return f"{city}: {seats}"

        return [find, book]


async def trip(asks: Asks) -> Any:
    found = await asks.call("find", "Oslo")
    asks.print(f"found {found}\n")
    booked = await asks.call("book", "Oslo", seats=found)
    asks.print(f"booked {booked}\n")
    return await asks.call("find", "Bergen")


async def caught(asks: Asks) -> Any:
    try:
        return await asks.call("book", "Oslo")
    except PermissionError as error:
        return f"no: {error}"


async def several(asks: Asks) -> Any:
    return await asyncio.gather(*(asks.call(*made) for made in (("book", "A"), ("find", "BB"), ("book", "CCC"))))


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def kit(desk: Desk) -> Toolkit:
    return Toolkit(desk.tools(), sandbox=ScriptSandbox(trip=trip, caught=caught, several=several))


def paused(result: ExecutionResult) -> PausedProgram:
    """Return the paused program, as another process reads it."""
    assert result.paused is not None
    return PausedProgram.from_bytes(result.paused.to_bytes(KEY), KEY)


async def test_a_call_that_needs_approval_pauses_the_program(kit: Toolkit, desk: Desk) -> None:
    result = await kit.execute_async("# trip")

    [call] = result.suspended_calls
    assert (result.is_paused, result.success, result.output) == (True, False, "found 4\n")
    assert (call.tool, call.arguments, call.in_doubt) == ("book", {"city": "Oslo", "seats": 4}, False)
    assert (call.request_id, call.digest, call.call_id) == (call.request.id, call.request.digest, call.request.call_id)
    assert desk.done == ["find Oslo"]


async def test_a_grant_takes_it_on_and_nothing_is_made_twice(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# trip")
    told: list[str] = []

    result = await kit.resume_async(
        paused(first), grants=[first.suspended_calls[0].grant("ada")], on_output=lambda text, stream: told.append(text)
    )

    assert (result.success, result.return_value, result.is_paused, result.paused) == (True, 6, False, None)
    assert desk.done == ["find Oslo", "book Oslo 4", "find Bergen"]
    assert (result.output, told) == ("found 4\nbooked Oslo: 4\n", ["booked Oslo: 4\n"])
    assert [call["outcome"] for call in result.tool_calls] == ["completed"] * 3
    assert [call["result"] for call in result.tool_calls] == [4, "Oslo: 4", 6]


async def test_a_denial_is_an_error_that_the_program_can_catch(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# caught")

    deny: Any = first.suspended_calls[0].deny
    with pytest.raises(TypeError, match="'ada' is the person or the message"):
        deny("ada")
    result = await kit.resume_async(paused(first), denials=[deny(message="too dear", by="ada")])

    assert (result.return_value, desk.done) == ("no: too dear", [])


async def test_several_calls_wait_at_once_and_are_answered_one_by_one(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# several")
    a, c = first.suspended_calls

    second = await kit.resume_async(paused(first), grants=[c.grant()])
    third = await kit.resume_async(paused(second), grants=[a.grant()])

    assert [call.arguments["city"] for call in second.suspended_calls] == ["A"]
    assert third.return_value == ["A: 1", 2, "CCC: 1"]
    assert sorted(desk.done) == ["book A 1", "book CCC 1", "find BB"]


async def test_without_an_answer_it_waits_on(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# trip")

    second = await kit.resume_async(paused(first))

    assert [call.request_id for call in second.suspended_calls] == [call.request_id for call in first.suspended_calls]
    assert desk.done == ["find Oslo"]


async def test_a_store_that_has_the_answer_meanwhile_is_asked(kit: Toolkit, desk: Desk) -> None:
    store = MemoryApprovalStore()
    first = await kit.execute_async("# trip", Run(approvals=store))
    await store.answer(first.suspended_calls[0].grant("ada"))

    result = await kit.resume_async(paused(first), Run(approvals=store))

    assert (result.return_value, len(desk.done)) == (6, 3)


async def test_a_person_may_put_other_arguments_in_place(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# trip")
    grant = first.suspended_calls[0].grant("ada", override_args={"city": "Rome", "seats": 2})

    result = await kit.resume_async(paused(first), grants=[grant])

    assert result.success
    assert desk.done == ["find Oslo", "book Rome 2", "find Bergen"]


async def test_a_standing_grant_answers_what_it_fits_and_what_comes_later(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# several")

    result = await kit.resume_async(paused(first), grants=[first.suspended_calls[0].request.always("ada")])

    assert result.return_value == ["A: 1", 2, "CCC: 1"]


@pytest.mark.parametrize("with_store", [False, True])
@pytest.mark.parametrize("standing", [False, True])
async def test_a_stale_paused_program_does_not_run_the_tool_again(
    kit: Toolkit, desk: Desk, with_store: bool, standing: bool
) -> None:
    store = MemoryApprovalStore() if with_store else None
    first = await kit.execute_async("# trip", Run(approvals=store))
    stale, request = paused(first), first.suspended_calls[0].request
    grant = request.always() if standing else request.grant()
    ended = await kit.resume_async(paused(first), Run(approvals=store), grants=[grant])

    if store is None:
        with pytest.raises(ApprovalError, match="used before"):
            await kit.resume_async(stale, Run(approvals=store), grants=[grant])
    else:
        again = await kit.resume_async(stale, Run(approvals=store), grants=[grant])
        assert (again.return_value, again.output, again.success) == (ended.return_value, ended.output, ended.success)

    assert desk.done.count("book Oslo 4") == 1


async def test_an_answer_to_nothing_is_an_error_before_anything_runs(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# several")
    a, c = first.suspended_calls
    other = (await kit.execute_async("# trip")).suspended_calls[0].grant()
    desk.done.clear()

    for grants in ([a.grant(), other], [a.grant(), a.grant("bob")], [a.grant(digest="0" * 64)]):
        with pytest.raises(ApprovalError):
            await kit.resume_async(paused(first), grants=grants)

    assert desk.done == []
    assert (await kit.resume_async(paused(first), grants=[a.grant(), c.grant()])).success


async def test_an_answer_that_does_not_fit_uses_up_none_beside_it(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# several")
    a, c = first.suspended_calls
    good = a.grant()

    with pytest.raises(ApprovalError):
        await kit.resume_async(paused(first), grants=[good, c.grant(digest="0" * 64)])
    result = await kit.resume_async(paused(first), grants=[good, c.grant()])

    assert result.success
    assert sorted(desk.done) == ["book A 1", "book CCC 1", "find BB"]


async def test_another_engine_is_refused_by_name(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# trip")
    newer = Toolkit(desk.tools(), sandbox=ScriptSandbox("script-2", trip=trip))

    with pytest.raises(PausedProgramError, match=r"run by script-1.* this is script-2"):
        await newer.resume_async(paused(first))


async def test_a_toolkit_without_one_of_its_tools_is_refused(kit: Toolkit, desk: Desk) -> None:
    first = await kit.execute_async("# trip")
    less = Toolkit(desk.tools()[1:], sandbox=ScriptSandbox(trip=trip))

    with pytest.raises(PausedProgramError, match="`find`"):
        await less.resume_async(paused(first))


async def test_a_program_that_does_something_else_is_stopped_before_any_call(desk: Desk) -> None:
    async def fickle(asks: Asks) -> Any:
        await asks.call("find", "Oslo" if not desk.done else "Rome")
        return await asks.call("book", "Oslo")

    kit = Toolkit(desk.tools(), sandbox=ScriptSandbox(fickle=fickle))
    first = await kit.execute_async("# fickle")

    with pytest.raises(ReplayDiverged, match=r"call of `find` with \{\"city\": \"Oslo\"\} was expected"):
        await kit.resume_async(paused(first), grants=[first.suspended_calls[0].grant()])

    assert desk.done == ["find Oslo"]


async def test_after_a_divergence_no_call_is_made_even_if_the_program_goes_on(desk: Desk) -> None:
    async def fickle(asks: Asks) -> Any:
        if desk.done:
            with suppress(ReplayDiverged):
                await asks.call("find", "Rome")
        await asks.call("find", "Oslo")
        return await asks.call("book", "Oslo")

    kit = Toolkit(desk.tools(), sandbox=ScriptSandbox(fickle=fickle))
    first = await kit.execute_async("# fickle")

    with pytest.raises(ReplayDiverged, match="call of `find`"):
        await kit.resume_async(paused(first), grants=[first.suspended_calls[0].grant()])

    assert desk.done == ["find Oslo"]


async def test_a_program_that_leaves_a_call_out_is_stopped_before_the_one_that_waits(desk: Desk) -> None:
    async def fickle(asks: Asks) -> Any:
        calls = [asks.call("book", "Oslo")]
        if not desk.done:
            calls.append(asks.call("find", "Oslo"))
        return await asyncio.gather(*calls)

    kit = Toolkit(desk.tools(), sandbox=ScriptSandbox(fickle=fickle), limits=SHORT)
    first = await kit.execute_async("# fickle")

    with pytest.raises(ReplayDiverged, match="no further call came"):
        await kit.resume_async(paused(first), grants=[first.suspended_calls[0].grant()])

    assert desk.done == ["find Oslo"]


async def test_a_program_that_ends_too_soon_has_diverged(desk: Desk) -> None:
    async def fickle(asks: Asks) -> Any:
        if desk.done:
            return 1
        await asks.call("find", "Oslo")
        return await asks.call("book", "Oslo")

    kit = Toolkit(desk.tools(), sandbox=ScriptSandbox(fickle=fickle))
    first = await kit.execute_async("# fickle")

    with pytest.raises(ReplayDiverged, match="its end came"):
        await kit.resume_async(paused(first))


def test_a_program_is_resumed_from_plain_code(desk: Desk) -> None:
    kit = Toolkit(desk.tools(), sandbox=FakeSandbox(("find", {"city": "Oslo"}), ("book", {"city": "Oslo"})))
    first = kit.execute("")

    result = kit.resume(paused(first), grants=[first.suspended_calls[0].grant()])

    assert (result.return_value, desk.done) == ("Oslo: 1", ["find Oslo", "book Oslo 1"])


async def test_a_tool_that_is_gone_meanwhile_is_an_error_in_the_program(desk: Desk) -> None:
    tools = desk.tools()
    kit = Toolkit(tools, sandbox=ScriptSandbox(caught=caught))
    first = await kit.execute_async("# caught")

    result = await kit.resume_async(
        paused(first), Run(available=frozenset({"find"})), grants=[first.suspended_calls[0].grant()]
    )

    assert result.return_value.startswith("no: ")
    assert desk.done == []


async def test_the_counts_of_the_run_go_on(desk: Desk) -> None:
    kit = Toolkit(Toolset(desk.tools()), sandbox=ScriptSandbox(trip=trip))
    limits = CallLimits(total=2)
    first = await kit.execute_async("# trip", Run(limits=limits))

    result = await kit.resume_async(paused(first), Run(limits=limits), grants=[first.suspended_calls[0].grant()])

    assert "RuntimeError" in (result.error or "")
    assert desk.done == ["find Oslo", "book Oslo 4"]


async def test_a_program_whose_calls_gave_too_much_waits_and_cannot_be_taken_up(desk: Desk) -> None:
    @ez_tool
    async def load(size: int) -> str:
        return "x" * size

    async def heavy(asks: Asks) -> Any:
        for _ in range(3):
            await asks.call("load", 30_000_000)
        return await asks.call("book", "Oslo")

    kit = Toolkit([load, *desk.tools()], sandbox=ScriptSandbox(heavy=heavy))

    result = await kit.execute_async("# heavy")

    assert (result.is_paused, result.paused, len(result.suspended_calls)) == (True, None, 1)


async def test_of_two_that_resume_a_program_at_once_one_is_told(kit: Toolkit, desk: Desk) -> None:
    store = MemoryApprovalStore()
    first = await kit.execute_async("# trip", Run(approvals=store))
    await store.answer(first.suspended_calls[0].request.grant("ann"))

    results = await asyncio.gather(
        *(kit.resume_async(paused(first), Run(approvals=store)) for _ in range(2)), return_exceptions=True
    )

    [problem] = [result for result in results if isinstance(result, PausedProgramError)]
    assert "it is being resumed since" in str(problem)
    assert desk.done.count("book Oslo 4") == 1


async def test_a_program_whose_call_is_cut_off_is_resumed_and_asks_about_it(kit: Toolkit, desk: Desk) -> None:
    store = MemoryApprovalStore()
    first = await kit.execute_async("# trip", Run(approvals=store))
    request = first.suspended_calls[0].request
    await store.use(request, request.grant("ann"))
    await store.begin(request, request.grant("ann"))
    await store.break_off(request, request.grant("ann"))

    again = await kit.resume_async(paused(first), Run(approvals=store))

    [call] = again.suspended_calls
    assert call.request.in_doubt
    assert "book Oslo 4" not in desk.done


# --- a resumption that is cancelled, or whose process is killed


class Stuck:
    """Tools that note what they did; the one called `wait` does not end on its first call."""

    def __init__(self, **options: Any) -> None:
        self.done: list[str] = []
        self.waits = asyncio.Event()

        @ez_tool(requires_approval=True)
        async def pay(cents: int) -> str:
            self.done.append(f"pay {cents}")
            return f"paid {cents}"

        @ez_tool
        async def note(text: str) -> dict[str, int]:
            self.done.append(f"note {text}")
            return {"length": len(text)}

        @ez_tool(**options)
        async def wait() -> str:
            self.done.append("wait")
            if self.done.count("wait") == 1:
                self.waits.set()
                await asyncio.Event().wait()
            return "waited"

        self.tools = [pay, note, wait]

    async def cancel_in_the_middle(self, kit: Toolkit, stored: PausedProgram, run: Run) -> None:
        resuming = asyncio.create_task(kit.resume_async(stored, run))
        await self.waits.wait()
        resuming.cancel()
        with suppress(asyncio.CancelledError):
            await resuming


PROGRAM = """
a = await pay(3)
b = await note("abc")
c = await wait()
d = await note("de")
[a, b["length"], c, d["length"]]
"""


async def paused_and_approved(kit: Toolkit, store: Any) -> PausedProgram:
    first = await kit.execute_async(PROGRAM, Run(approvals=store))
    await store.answer(first.suspended_calls[0].grant("ann"))
    return paused(first)


@pytest.mark.parametrize("with_store", [False, True], ids=["approvals", "store"])
@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "file"])
async def test_a_resumption_that_is_cancelled_repeats_none_of_its_calls(
    engine: Sandbox, tmp_path: Path, in_file: bool, with_store: bool
) -> None:
    store = SqliteApprovalStore(tmp_path / "a.db") if in_file else MemoryApprovalStore()
    stuck = Stuck(idempotent=True)
    kit = Toolkit(stuck.tools, sandbox=engine)
    stored = await paused_and_approved(kit, store)
    run = Run(durability=Durability(store=store)) if with_store else Run(approvals=store)
    await stuck.cancel_in_the_middle(kit, stored, run)

    result = await kit.resume_async(
        stored, Run(durability=Durability(store=store)) if with_store else Run(approvals=store)
    )

    assert result.return_value == ["paid 3", 3, "waited", 2]
    assert stuck.done == ["pay 3", "note abc", "wait", "wait", "note de"]


async def test_the_call_that_was_under_way_is_asked_about_and_then_made(engine: Sandbox) -> None:
    store, stuck = MemoryApprovalStore(), Stuck()
    kit = Toolkit(stuck.tools, sandbox=engine)
    stored = await paused_and_approved(kit, store)
    await stuck.cancel_in_the_middle(kit, stored, Run(approvals=store))

    asked = await kit.resume_async(stored, Run(approvals=store))
    [call] = asked.suspended_calls
    before = list(stuck.done)
    result = await kit.resume_async(paused(asked), Run(approvals=store), grants=[call.grant("ann")])

    assert (call.tool, call.in_doubt, before) == ("wait", True, ["pay 3", "note abc", "wait"])
    assert (result.return_value, stuck.done[3:]) == (["paid 3", 3, "waited", 2], ["wait", "note de"])


async def test_an_answer_that_was_used_does_not_make_its_call_again(engine: Sandbox) -> None:
    store, stuck = MemoryApprovalStore(), Stuck(requires_approval=True)
    kit = Toolkit(stuck.tools, sandbox=engine)
    first = await kit.execute_async("wait()", Run(approvals=store))
    grant = first.suspended_calls[0].grant("ann")
    await store.answer(grant)
    await stuck.cancel_in_the_middle(kit, paused(first), Run(approvals=store))

    asked = await kit.resume_async(paused(first), Run(approvals=store), grants=[grant])

    assert [call.in_doubt for call in asked.suspended_calls] == [True]
    assert stuck.done == ["wait"]


async def test_a_doubt_about_a_resumed_call_follows_its_request(engine: Sandbox) -> None:
    store, stuck = MemoryApprovalStore(), Stuck(requires_approval=True)
    kit = Toolkit(stuck.tools, sandbox=engine)
    first = await kit.execute_async("wait()", Run(approvals=store))
    await store.answer(first.suspended_calls[0].grant("ann"))
    await stuck.cancel_in_the_middle(kit, paused(first), Run(approvals=store))

    asked = await kit.resume_async(paused(first), Run(approvals=store))
    request = asked.suspended_calls[0].request
    done = await kit.resume_async(paused(asked), Run(approvals=store), grants=[request.done("waited", "ann")])

    assert request.follows == first.suspended_calls[0].request_id
    assert (done.return_value, await store.unended()) == ("waited", ())


AGAIN = """
import asyncio

async def rest():
    await agree()
    await wait()

await asyncio.gather(pay(), rest())
"""


class Again:
    """Tools of which two never end, and a host that resumes a program with the same answers each time."""

    def __init__(self, engine: Sandbox) -> None:
        self.store, self.done, self._news = MemoryApprovalStore(), list[str](), asyncio.Queue[str]()
        self._kit = Toolkit([self._tool("pay"), self._tool("agree"), self._tool("wait")], sandbox=engine)

    def _tool(self, name: str) -> Tool[..., Any]:
        @ez_tool(name=name, requires_approval=name != "wait", idempotent=name == "wait")
        async def tool() -> None:
            self.done.append(name)
            self._news.put_nowait(name)
            if name != "agree":
                await asyncio.Event().wait()

        return tool

    def emit(self, event: CallEvent) -> None:
        if event.kind == "suspended":
            self._news.put_nowait(f"{event.tool} asked")

    async def begin(self) -> None:
        first = await self._kit.execute_async(AGAIN, Run(approvals=self.store))
        self._paused, self._grants = paused(first), [call.grant("ann") for call in first.suspended_calls]

    async def resume_until(self, *news: str) -> None:
        """Resume the program, and cancel that when all of this has happened."""
        self._news, run = asyncio.Queue(), Run(approvals=self.store, sinks=[self])
        resuming = asyncio.create_task(self._kit.resume_async(self._paused, run, grants=self._grants))
        while news:
            heard = asyncio.create_task(self._news.get())
            await asyncio.wait([resuming, heard], return_when=asyncio.FIRST_COMPLETED)
            assert not resuming.done(), resuming
            news = tuple(name for name in news if name != heard.result())
        resuming.cancel()
        with suppress(asyncio.CancelledError):
            await resuming


async def test_a_host_that_tries_again_may_give_the_same_answers_each_time(engine: Sandbox) -> None:
    again = Again(engine)
    await again.begin()

    await again.resume_until("pay", "wait")
    await again.resume_until("pay asked", "wait")
    [doubt] = await again.store.list(pending=True)
    await again.store.answer(doubt.request.grant("ann"))
    await again.resume_until("pay", "wait")
    await again.resume_until("pay asked", "wait")
    await again.resume_until("wait")  # in doubt for the second time, where the answer is to the first request

    assert sorted(again.done) == ["agree", "pay", "pay", *["wait"] * 5]
    assert [entry.request.tool for entry in await again.store.list(pending=True)] == ["pay"]
