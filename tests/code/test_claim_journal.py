"""The calls of a resumption that did not end, kept in the store of its claim."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.postgres import Postgres
from toolcrib.approvals import (
    Execution,
    LedgerStore,
    MemoryApprovalStore,
    PostgresApprovalStore,
    SqliteApprovalStore,
)
from toolcrib.code import JournalEntry, PausedProgram, Toolkit
from toolcrib.code._claim import ClaimJournal
from toolcrib.errors import PausedProgramError
from toolcrib.pipeline import Run
from toolcrib.sandbox import Sandbox, Value
from toolcrib.tools import Tool, ez_tool

KEY = "a key of more than sixteen bytes"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LedgerStore]:
    match request.param:
        case "memory":
            yield MemoryApprovalStore()
        case "sqlite":
            yield SqliteApprovalStore(tmp_path / "store.db")
        case _:
            pytest.importorskip("psycopg")
            server: Postgres = request.getfixturevalue("postgres")
            with closing(PostgresApprovalStore(server.url(f"claims_{uuid4().hex[:8]}"))) as kept:
                yield kept


async def take_over(store: LedgerStore, key: str) -> None:
    """Claim work as another process does that takes this one for lost."""

    def claim(ledger: Any) -> None:
        ledger.write_claim(key, Execution(process="another"))

    await store._run(claim, write=True)  # pyright: ignore[reportPrivateUsage] -- this process lives


def claims(store: LedgerStore) -> list[str]:
    """Return the work that a store has claimed here."""
    return [key.removeprefix("claim:") for key in store._executing if key.startswith("claim:")]  # pyright: ignore[reportPrivateUsage] -- a program's key is its own


async def test_a_result_too_many_is_left_out_so_that_its_call_is_in_doubt() -> None:
    store = MemoryApprovalStore()
    await store.claim("program")
    journal = ClaimJournal(store, "program", "journal")
    for number in range(9):
        journal.append(JournalEntry("started", f"{number}"))
        journal.append(JournalEntry("ended", f"{number}", {"reply": Value("x" * 2_000_000)}))
    await journal.flush()

    entries = await ClaimJournal(store, "program", "journal").read()

    assert [sum(entry.kind == kind for entry in entries) for kind in ("started", "ended")] == [9, 7]


async def test_a_journal_that_is_deleted_has_no_entries(store: LedgerStore) -> None:
    await store.claim("program")
    journal = ClaimJournal(store, "program", "one")
    journal.append(JournalEntry("started", "a"))
    await journal.flush()

    await journal.delete()

    assert await ClaimJournal(store, "program", "one").read() == []


async def test_a_process_that_was_taken_for_lost_writes_nothing_more(store: LedgerStore) -> None:
    await store.claim("program")
    journal = ClaimJournal(store, "program", "journal")
    journal.append(JournalEntry("started", "a"))
    await journal.flush()
    await take_over(store, "program")  # it has written nothing yet
    journal.append(JournalEntry("started", "b"))

    with pytest.raises(PausedProgramError, match="another process resumes it now"):
        await journal.flush()

    assert [entry.call_id for entry in await ClaimJournal(store, "program", "journal").read()] == ["a"]


async def test_a_program_that_was_taken_for_lost_makes_no_further_call(engine: Sandbox, store: LedgerStore) -> None:
    made: list[str] = []

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        made.append("pay")
        (claimed,) = claims(store)
        await take_over(store, claimed)
        return "paid"

    @ez_tool
    async def note(text: str) -> str:
        made.append("note")
        return text

    kit = Toolkit([pay, note], sandbox=engine)
    paused = (await kit.execute_async("a = await pay(3)\nb = await note(a)", Run(approvals=store))).paused
    assert paused is not None
    await store.answer(paused.suspended_calls[0].request.grant("ann"))

    with pytest.raises(PausedProgramError, match="another process resumes it now"):
        await kit.resume_async(paused, Run(approvals=store))

    assert made == ["pay"]


# --- a process that is killed ----------------------------------------------------------------------------------------

TOOLS = """
import os, signal
from toolcrib.tools import ez_tool

def tools(effects, kill):
    def write(text):
        with open(effects, "a") as file:
            file.write(text + "\\n")

    @ez_tool(requires_approval=True)
    async def pay(cents: int) -> str:
        write(f"pay {cents}")
        return f"paid {cents}"

    @ez_tool
    async def note(text: str) -> str:
        write(f"note {text}")
        return text

    @ez_tool(idempotent=True)
    async def wait() -> str:
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        write("wait")
        return "waited"

    return [pay, note, wait]
"""
KILLED = """
import sys
from pathlib import Path
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.code import PausedProgram, Toolkit
from toolcrib.pipeline import Run

folder, key = Path(sys.argv[1]), sys.argv[2]
paused = PausedProgram.from_bytes((folder / "paused").read_bytes(), key)
kit = Toolkit(tools(folder / "effects", True), sandbox=sys.argv[3])
kit.resume(paused, run=Run(approvals=SqliteApprovalStore(folder / "store.db")))
"""
CODE = """
a = await pay(3)
b = await note("x")
c = await wait()
[a, b, c]
"""


def tools_in(folder: Path) -> list[Tool[..., Any]]:
    found: dict[str, Any] = {}
    exec(TOOLS, found)
    return found["tools"](folder / "effects", kill=False)


async def test_a_resumption_that_is_killed_repeats_no_call_that_ended(engine: Sandbox, tmp_path: Path) -> None:
    kit, store = Toolkit(tools_in(tmp_path), sandbox=engine), SqliteApprovalStore(tmp_path / "store.db")
    first = await kit.execute_async(CODE, Run(approvals=store))
    assert first.paused is not None
    await store.answer(first.suspended_calls[0].grant("ann"))
    (tmp_path / "paused").write_bytes(first.paused.to_bytes(KEY))
    name = "monty" if "monty" in first.paused.engine.lower() else "process"
    args = [sys.executable, "-c", textwrap.dedent(TOOLS + KILLED), str(tmp_path), KEY, name]
    killed = await asyncio.to_thread(subprocess.run, args, check=False)
    stored = PausedProgram.from_bytes((tmp_path / "paused").read_bytes(), KEY)

    result = await kit.resume_async(stored, Run(approvals=store))

    assert (killed.returncode, result.return_value) == (-signal.SIGKILL, ["paid 3", "x", "waited"])
    assert (tmp_path / "effects").read_text().split("\n")[:-1] == ["pay 3", "note x", "wait"]
