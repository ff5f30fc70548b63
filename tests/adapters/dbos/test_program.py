"""Durable programs: every call is made once, whatever becomes of the worker, and people are waited for outside."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from dbos._error import DBOSWorkflowConflictIDError

from tests.adapters.dbos.durable import QUICK, engine_of
from toolcrib.adapters.dbos import (
    Client,
    DurableProgram,
    DurableToolkit,
    Placement,
    Queue,
    cancel_work,
    recover,
    resume_work,
)
from toolcrib.adapters.dbos._program_journal import ProgramJournal, cancel_run, journal_entries, program_run
from toolcrib.code import JournalEntry, SavedProgram, SqliteProgramStore, Toolkit
from toolcrib.errors import EngineError
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool


def durable(*tools: Any, sandbox: Any = "process") -> DurableToolkit:
    name = f"kit_{uuid4().hex[:8]}"
    return DurableToolkit(Toolkit(list(tools), sandbox=sandbox), Queue(name, polling=QUICK), name=name)


@pytest.mark.parametrize("sandbox", ["process", "monty"])
async def test_a_program_waits_for_a_person_and_goes_on_without_repeating_a_call(database: str, sandbox: str) -> None:
    ran: list[Any] = []

    @ez_tool
    async def find(n: int) -> int:
        ran.append(n)
        return n * 2

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        ran.append("paid")
        return f"paid {cents}"

    toolkit = durable(find, pay, sandbox=sandbox)
    async with engine_of(database, toolkit) as engine:
        program = await toolkit.start("found = [find(n) for n in range(3)]\nprint(pay(sum(found)))\nfind(9)")
        waiting = await program.settled(polling=QUICK)
        states = [await program.state()]
        await engine.client.approvals.answer(waiting.suspended[0].grant("ann"))
        result = await program.result(polling=QUICK)
        states.append(await program.state())

    assert states == ["suspended", "done"]
    assert "goes on when a person has decided" in waiting.text()
    assert (result.output, result.return_value) == ("paid 6\n", 18)
    assert ran == [0, 1, 2, "paid", 9]


async def test_a_denial_is_an_error_in_the_program(file: str) -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return "paid"

    toolkit = durable(pay)
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("try:\n    pay(1)\nexcept PermissionError as error:\n    print(error)")
        waiting = await program.settled(polling=QUICK)
        await engine.client.approvals.answer(waiting.suspended[0].deny(message="too much", by="ann"))
        result = await program.result(polling=QUICK)

    assert "too much" in result.output


@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_call_that_was_cut_off_is_repeated_or_asked_about(file: str, idempotent: bool) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @ez_tool
    async def find() -> int:
        ran.append("find")
        return 3

    @ez_tool(idempotent=idempotent)
    async def pay(cents: int) -> str:
        ran.append("pay")
        if len(ran) == 2:
            begun.set()
            await asyncio.Event().wait()
        return "paid"

    toolkit = durable(find, pay, sandbox=FakeSandbox(("find", {}), ("pay", {"cents": 3})))
    async with engine_of(file, toolkit, worker_id="worker", grace=0):
        program = await toolkit.start("pay(find())", placement=Placement("p1"))
        await begun.wait()
    async with engine_of(file, toolkit, worker_id="worker") as engine:
        program = type(program)("p1", engine.client)
        result = await program.settled(polling=QUICK)
        if not idempotent:
            assert ran == ["find", "pay"]
            assert "may have been done" in result.suspended[0].text()
            await engine.client.approvals.answer(result.suspended[0].grant("ann"))
            result = await program.result(polling=QUICK)

    assert result.return_value == "paid"
    assert ran == ["find", "pay", "pay"]


@pytest.mark.parametrize("cuts", [1, 2])
async def test_an_approved_call_of_an_idempotent_tool_that_was_cut_off_is_repeated_by_its_approval(
    database: str, cuts: int
) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @ez_tool(idempotent=True, requires_approval=True)
    async def pay(cents: int) -> str:
        ran.append("pay")
        if len(ran) <= cuts:
            begun.set()
            await asyncio.Event().wait()
        return "paid"

    toolkit = durable(pay, sandbox=FakeSandbox(("pay", {"cents": 3}), ("pay", {"cents": 3})))
    async with engine_of(database, toolkit, worker_id="worker", grace=0):
        program = await toolkit.start("pay(3) + pay(3)")
        first = await program.settled(polling=QUICK)
        await toolkit.approve(first.suspended[0], "ann")
        await begun.wait()
    for _ in range(cuts - 1):
        begun.clear()
        async with engine_of(database, toolkit, worker_id="worker", grace=0):
            await begun.wait()
    async with engine_of(database, toolkit, worker_id="worker") as engine:
        second = await DurableProgram(program.id, engine.client).settled(polling=QUICK)
        before = list(ran)
        await toolkit.approve(second.suspended[0], "ann")
        result = await DurableProgram(program.id, engine.client).result(polling=QUICK)

    assert (second.suspended[0].in_doubt, second.suspended[0].call_id != first.suspended[0].call_id) == (False, True)
    assert (result.return_value, before, len(ran)) == ("paid", ["pay"] * (cuts + 1), cuts + 2)


async def test_an_approved_call_that_was_cut_off_is_asked_about_if_its_tool_is_not_idempotent(database: str) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        ran.append("pay")
        begun.set()
        await asyncio.Event().wait()
        return "paid"

    toolkit = durable(pay, sandbox=FakeSandbox(("pay", {"cents": 3})))
    async with engine_of(database, toolkit, worker_id="worker", grace=0):
        program = await toolkit.start("pay(3)")
        first = await program.settled(polling=QUICK)
        await toolkit.approve(first.suspended[0], "ann")
        await begun.wait()
    async with engine_of(database, toolkit, worker_id="worker") as engine:
        second = await DurableProgram(program.id, engine.client).settled(polling=QUICK)

    assert (second.suspended[0].in_doubt, second.suspended[0].call_id) == (True, first.suspended[0].call_id)
    assert ran == ["pay"]


async def test_calls_at_once_get_their_own_answers_again(file: str) -> None:
    ran: list[int] = []
    begun = asyncio.Event()

    @ez_tool(idempotent=True)
    async def find(n: int) -> int:
        ran.append(n)
        await asyncio.sleep(0.01 * (4 - n))  # the last begun is the first to end
        return n * 10

    @ez_tool(idempotent=True)
    async def hold() -> str:
        if begun.is_set():
            return "held"
        begun.set()
        await asyncio.Event().wait()
        return "never"

    toolkit = durable(find, hold, sandbox="monty")
    code = "import asyncio\nfound = await asyncio.gather(*[find(n) for n in range(4)])\nhold()\nfound"
    async with engine_of(file, toolkit, worker_id="worker", grace=0):
        program = await toolkit.start(code)
        await begun.wait()
    async with engine_of(file, toolkit, worker_id="worker") as engine:
        result = await type(program)(program.id, engine.client).result(polling=QUICK)

    assert result.return_value == [0, 10, 20, 30]
    assert sorted(ran) == [0, 1, 2, 3]


async def test_a_cancelled_program_makes_no_further_call_until_it_is_resumed(file: str) -> None:
    ran: list[str] = []
    begun, go = asyncio.Event(), asyncio.Event()

    @ez_tool(idempotent=True)
    async def first() -> int:
        begun.set()
        await go.wait()
        return 1

    @ez_tool
    async def second() -> int:
        ran.append("second")
        return 2

    toolkit = durable(first, second, sandbox=FakeSandbox(("first", {}), ("second", {})))
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("first() + second()")
        await begun.wait()
        cancelled = await asyncio.to_thread(cancel_work, engine.client, program.id)
        go.set()
        before = await program.state(), list(ran)
        await asyncio.to_thread(resume_work, engine.client, program.id)
        result = await program.result(polling=QUICK)

    assert (cancelled.state, before) == ("cancelled", ("cancelled", []))
    assert (result.return_value, ran) == (2, ["second"])


async def test_a_program_that_nobody_enqueued_is_an_error(file: str) -> None:
    async with Client(file) as client:
        program = DurableProgram("p1", client)

        for ask in (program.state, program.settled, program.result, program.cancel):
            with pytest.raises(EngineError, match="there is no program p1"):
                await ask()


async def test_whoever_lost_the_workflow_writes_nothing_more(file: str) -> None:
    toolkit = durable(ez_tool(abs), sandbox=FakeSandbox())
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("1")
        await program.result(polling=QUICK)
        token = "that of an execution which is over"
        stale = ProgramJournal(engine.client, program.id, program.id, token)
        behind = ProgramJournal(engine.client, "no line of it is there", program.id, token)

        for late in (lambda: stale.claim(2, "kit", "queue"), lambda: stale.finish("paused", {})):
            with pytest.raises(DBOSWorkflowConflictIDError):
                late()
        behind.append(JournalEntry("started", "c1"))
        for _ in range(2):
            with pytest.raises(DBOSWorkflowConflictIDError):
                await behind.flush()
        with pytest.raises(DBOSWorkflowConflictIDError):
            behind.append(JournalEntry("started", "c2"))
        assert await program.state() == "done"


async def test_of_two_executions_one_writes_a_line(file: str) -> None:
    async with Client(file) as client:
        one, other = (ProgramJournal(client, "p1", "p1", None) for _ in range(2))
        for journal in (one, other):
            journal.claim(1, "kit", "queue")

        one.append(JournalEntry("started", "c1"))
        await one.flush()
        for call in ("c2", "c3"):
            other.append(JournalEntry("started", call))

        with pytest.raises(DBOSWorkflowConflictIDError):
            await other.flush()
        await other.drain()
        assert [entry.call_id for entry in journal_entries(client, "p1")] == ["c1"]


async def test_the_journal_holds_up_its_own_program_alone_and_writes_in_order(file: str) -> None:
    async with Client(file) as client:
        journal = ProgramJournal(client, "p1", "p1", None)
        journal.claim(1, "kit", "queue")
        with client.engine.connect() as other:
            other.exec_driver_sql("BEGIN IMMEDIATE")  # nobody else can write
            journal.append(JournalEntry("started", "c0"))
            given_up = asyncio.create_task(journal.flush())
            for n in range(1, 4):
                journal.append(JournalEntry("started", f"c{n}"))
            flushed = asyncio.create_task(journal.flush())
            await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            before = journal_entries(client, "p1"), flushed.done()
            other.rollback()
        await flushed
        after = [entry.call_id for entry in journal_entries(client, "p1")]

    assert before == ([], False)
    assert after == ["c0", "c1", "c2", "c3"]


async def test_a_journal_that_is_left_has_written_what_it_was_given(file: str) -> None:
    async with Client(file) as client:
        journal = ProgramJournal(client, "p1", "p1", None)
        journal.claim(1, "kit", "queue")
        for n in range(3):
            journal.append(JournalEntry("cancelled", f"c{n}"))

        await journal.drain()

        assert len(journal_entries(client, "p1")) == 3


async def test_a_program_that_is_over_gone_on_or_cancelled_is_not_run_again(file: str) -> None:
    async with Client(file) as client:
        names = ("over", "gone on", "cancelled", "cancelled later")
        journals = {name: ProgramJournal(client, name, name, None) for name in names}
        for journal in journals.values():
            journal.claim(1, "kit", "queue")
        journals["over"].finish("done", {"state": "done"})
        journals["gone on"].finish("paused", {"state": "paused"})
        journals["gone on"].claim(2, "kit", "queue")
        journals["cancelled later"].finish("paused", {"state": "paused"})
        for name in ("cancelled", "cancelled later"):
            cancel_run(client, name)
        ended = journals["cancelled"].finish("done", {"state": "done"})

        first = {name: journal.claim(1, "kit", "queue") for name, journal in journals.items()}
        later = journals["cancelled"].claim(2, "kit", "queue")

    cancelled = {"state": "cancelled"}
    assert first == {
        "over": {"state": "done"}, "gone on": {"state": "paused"}, "cancelled": cancelled, "cancelled later": cancelled
    }  # fmt: skip
    assert not ended
    assert later == {"state": "cancelled"}


async def test_of_two_programs_that_wait_the_one_that_was_answered_goes_on_for_whom_it_was_asked(file: str) -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return f"paid {cents}"

    toolkit = durable(pay, sandbox=FakeSandbox(("pay", {"cents": 3})))
    async with engine_of(file, toolkit) as engine:
        programs = [await toolkit.start("pay(3)", principal=name) for name in ("ann", "bob")]
        waiting = [await program.settled(polling=QUICK) for program in programs]
        await engine.client.approvals.answer(waiting[0].suspended[0].grant("cay"))
        result = await programs[0].result(polling=QUICK)
        runs = [await asyncio.to_thread(program_run, engine.client, program.id) for program in programs]

    assert [one.suspended[0].principal for one in waiting] == ["ann", "bob"]
    assert result.return_value == "paid 3"
    assert [run and run.generation for run in runs] == [2, 1]


async def test_a_program_that_waits_is_cancelled_for_good(file: str) -> None:
    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        return f"paid {cents}"

    toolkit = durable(pay, sandbox=FakeSandbox(("pay", {"cents": 3})))
    async with engine_of(file, toolkit) as engine:
        program = await toolkit.start("pay(3)")
        await program.settled(polling=QUICK)
        await asyncio.to_thread(cancel_work, engine.client, program.id)

        assert await program.state() == "cancelled"


async def test_a_worker_that_was_given_up_begins_no_further_call_of_its_programs(file: str) -> None:
    ran: list[int] = []

    @ez_tool(idempotent=True)
    async def work(n: int) -> int:
        ran.append(n)
        if engine.worker_id == "zombie":
            engine.lost.set()
        return n

    kit = durable(work)
    async with engine_of(file, kit, worker_id="zombie", grace=0.1) as engine:
        program = await kit.start("work(1)\nwork(2)\n'done'")
        begun = 0
        while begun < 2:  # the second is written down, and then held back
            await asyncio.sleep(QUICK)
            entries = await asyncio.to_thread(journal_entries, engine.client, program.id)
            begun = sum(entry.kind == "started" for entry in entries)
    given_up = list(ran)
    async with Client(file) as client:
        await asyncio.to_thread(recover, client, "zombie", force=True)
    async with engine_of(file, kit, worker_id="next") as engine:
        result = await DurableProgram(program.id, engine.client).result()

    assert (given_up, ran, result.return_value) == ([1], [1, 2], "done")


async def test_a_worker_that_was_given_up_asks_about_no_call_of_its_programs(database: str) -> None:
    def given_up(arguments: Any, ctx: Any) -> bool:
        engine.lost.set()
        return True

    @ez_tool(requires_approval=given_up)
    async def pay() -> str:
        return "paid"

    toolkit = durable(pay)
    async with engine_of(database, toolkit, grace=0.1) as engine:
        await toolkit.start("pay()")
        await engine.lost.wait()
        await asyncio.sleep(10 * QUICK)
        pending = await engine.client.approvals.list(pending=True)

    assert not pending


async def test_saved_programs_and_durable_ones_share_a_database(file: str) -> None:
    toolkit = durable(ez_tool(abs), sandbox=FakeSandbox())
    saved = SavedProgram("trip", "# inputs: none\n1")
    store = SqliteProgramStore(file)
    async with engine_of(file, toolkit):
        program = await toolkit.start("1")
        await store.add(saved)
        result = await program.result(polling=QUICK)

    assert result.success
    assert await store.list() == (saved,)
