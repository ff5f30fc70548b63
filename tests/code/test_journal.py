"""The journal: which call is which, and what is known of one when the process was killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.code.scripts import Asks, ScriptSandbox
from toolcrib.approvals import approve_all
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.code import FileJournal, JournalEntry, PausedProgram, Toolkit, paused_program_in
from toolcrib.code._program_calls import ProgramCall, ProgramCalls, call_digest
from toolcrib.errors import ApprovalError, InvalidOutput, PausedProgramError, ReplayDiverged
from toolcrib.pipeline import Run
from toolcrib.sandbox import Host, Program, Raised, Reply, SandboxResult, Value
from toolcrib.schema import RunContext
from toolcrib.testing import FakeSandbox
from toolcrib.tools import Tool, ez_tool

KEY = b"a key of more than sixteen bytes"


# --- which call is which ---------------------------------------------------------------------------------------------


_ids = itertools.count()


def entries_of(name: str, *args: Any, reply: Reply | None = None) -> list[JournalEntry]:
    """Return the entries of a call."""
    summary = {"id": name, "name": name, "arguments": {"at": list(args)}, "outcome": "completed"}
    call = ProgramCall(f"{name} {next(_ids)}", name, call_digest(list(args), {}), summary)
    return [call.started(None), *([] if reply is None else [call.ended(reply)])]


def test_calls_are_matched_by_name_arguments_and_occurrence() -> None:
    one, two, three = (entries_of("find", at, reply=Value(at)) for at in (1, 1, 3))
    calls = ProgramCalls([*one, *two, *three])

    asked = [calls.match("find", call_digest([number], {})) for number in (3, 1, 1, 1)]

    assert [found and found.id for found in asked] == [three[0].call_id, one[0].call_id, two[0].call_id, None]


def test_of_two_equal_calls_the_one_that_waited_is_asked_for_last_by_an_engine_that_holds_it_back() -> None:
    waits, ended = entries_of("pay", 1), entries_of("pay", 1, reply=Value(1))

    held_back = ProgramCalls([*waits, *ended], open_last=True).match("pay", call_digest([1], {}))
    in_order = ProgramCalls([*waits, *ended]).match("pay", call_digest([1], {}))

    assert held_back is not None
    assert in_order is not None
    assert (held_back.id, in_order.id) == (ended[0].call_id, waits[0].call_id)


def test_a_new_call_before_the_known_ones_is_none_of_this_program() -> None:
    calls = ProgramCalls(entries_of("find", 1, reply=Value(1)))

    with pytest.raises(ReplayDiverged, match=r"call of `find` with .*1.* expected, and `find` with other arguments"):
        calls.match("find", call_digest([2], {}))
    with pytest.raises(ReplayDiverged, match="and `drop` with its arguments came"):
        calls.match("drop", call_digest([], {}))


def test_where_nothing_runs_again_only_open_calls_are_expected() -> None:
    calls = ProgramCalls([*entries_of("find", 1, reply=Value(1)), *entries_of("book", 1)], replays=False)

    waits = calls.expected

    assert waits is not None
    assert waits.name == "book"
    assert calls.match("book", call_digest([1], {})) is waits
    assert calls.match("find", call_digest([1], {})) is None


@pytest.mark.parametrize("reply", [Value({"a": [1]}), Value({"$table": 0}, (b"stream",)), Raised("KeyError", "x")])
def test_a_reply_goes_to_json_and_back(reply: Reply) -> None:
    entries = entries_of("find", 1, reply=reply)

    stored = [JournalEntry.from_dict(json.loads(json.dumps(entry.to_dict()))) for entry in entries]

    assert stored == entries
    assert ProgramCalls(stored).calls == ProgramCalls(entries).calls
    assert ProgramCalls(stored).calls[0].reply == reply


# --- killed between an effect and its record -------------------------------------------------------------------------

PROGRAM = """
    import os, signal, sys
    from toolcrib.code import FileJournal, Toolkit
    from toolcrib.testing import FakeSandbox
    from toolcrib.tools import ez_tool

    @ez_tool
    async def find(city: str) -> int:
        return 3

    @ez_tool
    async def pay(sum: int) -> str:
        os.kill(os.getpid(), signal.SIGKILL)

    calls = ("find", {"city": "Oslo"}), ("pay", {"sum": 3})
    Toolkit([find, pay], sandbox=FakeSandbox(*calls)).execute("", journal=FileJournal(sys.argv[1]))
"""


@pytest.fixture
def left(tmp_path: Path) -> PausedProgram:
    """Return what is left of a program whose process was killed in its second call."""
    journal = tmp_path / "journal"
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), str(journal)], check=False)
    assert ended.returncode == -signal.SIGKILL
    return FileJournal(journal).paused()


def here(done: list[str], **options: Any) -> Toolkit:
    """Return the toolkit of the next process."""

    @ez_tool
    async def find(city: str) -> int:
        done.append("find")
        return 3

    @ez_tool(**options)
    async def pay(sum: int) -> str:
        done.append("pay")
        return "paid"

    return Toolkit([find, pay], sandbox=FakeSandbox(("find", {"city": "Oslo"}), ("pay", {"sum": 3})))


def test_a_call_that_was_begun_when_the_process_died_is_in_doubt(left: PausedProgram) -> None:
    done: list[str] = []

    result = here(done).resume(left)

    [call] = result.suspended_calls
    assert (call.tool, call.arguments, call.in_doubt) == ("pay", {"sum": 3}, True)
    assert "may have been done" in call.request.text()
    assert done == []


def test_what_is_in_doubt_is_repeated_by_a_grant_alone(left: PausedProgram) -> None:
    done: list[str] = []
    first = here(done).resume(left)
    assert first.paused is not None

    again = here(done).resume(first.paused)
    result = here(done).resume(first.paused, grants=[first.suspended_calls[0].grant("ada")])

    assert [call.in_doubt for call in again.suspended_calls] == [True]
    assert (result.return_value, done) == ("paid", ["pay"])
    with pytest.raises(ApprovalError, match="used before"):
        here(done).resume(first.paused, grants=[first.suspended_calls[0].grant("ada")])


async def test_what_is_in_doubt_is_not_repeated_by_a_yes_to_every_call_of_the_tool(left: PausedProgram) -> None:
    done: list[str] = []
    first = await here(done).resume_async(left)
    assert first.paused is not None
    standing = replace(first.suspended_calls[0].request.always("ada"), call_id=None, request_id=None)

    with pytest.raises(ApprovalError, match="no call that waits is meant"):
        await here(done).resume_async(first.paused, grants=[standing])
    again = await here(done).resume_async(first.paused, Run(approver=approve_all))

    assert [call.in_doubt for call in again.suspended_calls] == [True]
    assert done == []


def dies_in_its_last_call(path: Path) -> None:
    """Cut a journal to what it would hold if the process had died before the last call's end."""
    lines = path.read_bytes().splitlines(keepends=True)
    at = max(index for index, line in enumerate(lines) if b'"ended"' in line)
    path.write_bytes(b"".join(lines[:at]))


def test_what_is_in_doubt_is_given_its_result_if_that_is_of_the_tools_type(left: PausedProgram, tmp_path: Path) -> None:
    done: list[str] = []
    first = here(done).resume(left)
    assert first.paused is not None
    request = first.suspended_calls[0].request

    with pytest.raises(InvalidOutput, match="`pay`"):
        here(done).resume(first.paused, grants=[request.done(5)], journal=FileJournal(tmp_path / "none"))
    result = here(done).resume(first.paused, grants=[request.done("by hand")])

    assert (result.return_value, done) == ("by hand", [])
    assert not (tmp_path / "none").exists()


def test_each_death_of_a_process_in_a_call_is_asked_about_by_itself(left: PausedProgram, tmp_path: Path) -> None:
    done: list[str] = []
    path = tmp_path / "again"
    asked: list[str] = []
    paused = left
    for _ in range(3):
        first = here(done).resume(paused)
        assert first.paused is not None
        asked.append(first.suspended_calls[0].request.id)
        with FileJournal(path) as journal:
            here(done).resume(first.paused, grants=[first.suspended_calls[0].grant("ada")], journal=journal)
        dies_in_its_last_call(path)
        paused = FileJournal(path).paused()

    assert len(set(asked)) == 3
    assert done == ["pay"] * 3


def test_what_is_in_doubt_may_be_left_as_it_is(left: PausedProgram) -> None:
    done: list[str] = []
    first = here(done).resume(left)
    assert first.paused is not None

    result = here(done).resume(first.paused, denials=[first.suspended_calls[0].deny(message="it was paid")])

    assert (result.error, done) == ("PermissionError: it was paid", [])


def test_an_idempotent_call_is_made_again_under_its_own_id(left: PausedProgram) -> None:
    done: list[str] = []

    result = here(done, idempotent=True).resume(left)

    assert (result.return_value, done) == ("paid", ["pay"])
    assert [call["id"] for call in result.tool_calls] == [call.id for call in left.calls]


# --- the file --------------------------------------------------------------------------------------------------------


def paying(done: list[str], **options: Any) -> list[Tool[..., Any]]:
    @ez_tool
    async def find(city: str) -> int:
        done.append(f"find {city}")
        return 3

    @ez_tool(requires_approval=True, **options)
    async def pay(ctx: RunContext[Any], sum: int) -> str:
        done.append(f"pay {sum}")
        return f"paid {sum}"

    return [find, pay]


CALLS = ("find", {"city": "Oslo"}), ("pay", {"sum": 3})


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Toolkit(paying([]), sandbox=FakeSandbox(*CALLS)).execute("", journal=FileJournal(tmp_path / "journal"))

    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_program_that_paused_is_read_from_its_journal(tmp_path: Path) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done), sandbox=FakeSandbox(*CALLS))
    journal = FileJournal(tmp_path / "journal")
    first = kit.execute("", journal=journal)

    result = kit.resume(journal.paused(), grants=[first.suspended_calls[0].grant()], journal=journal)

    assert (result.return_value, done) == ("paid 3", ["find Oslo", "pay 3"])
    with pytest.raises(PausedProgramError, match="no program that has yet to end"):
        journal.paused()


def test_a_program_that_ended_is_not_taken_up(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal", sync=True)
    Toolkit(paying([]), sandbox=FakeSandbox(CALLS[0])).execute("", journal=journal)

    with pytest.raises(PausedProgramError, match="no program that has yet to end"):
        journal.paused()
    with pytest.raises(PausedProgramError, match="cannot be read"):
        FileJournal(tmp_path / "none").paused()


def test_a_line_that_was_cut_loses_no_other(tmp_path: Path) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done), sandbox=FakeSandbox(*CALLS))
    path = tmp_path / "journal"
    with FileJournal(path) as journal:
        kit.execute("", journal=journal)
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if b'"ended"' in line and b'"find"' in line)
    path.write_bytes(b"".join(lines[:at]) + lines[at][:20])

    with FileJournal(path) as journal:
        result = kit.resume(journal.paused(), journal=journal)
        last = journal.paused()

    assert [(call.tool, call.in_doubt) for call in result.suspended_calls] == [("find", True)]
    assert last.suspended_calls == result.suspended_calls


@pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
def test_a_program_goes_on_from_any_line_at_which_it_was_cut_twice(tmp_path: Path) -> None:
    @ez_tool(idempotent=True)
    async def add(one: int, other: int) -> int:
        return one + other

    kit = Toolkit([add], sandbox="process")
    whole = FileJournal(tmp_path / "whole")
    kit.execute("import time\ntime.time()\nadd(add(1, 2), add(3, 4))", journal=whole)
    lines = whole.path.read_bytes().splitlines(keepends=True)[:-1]

    values: list[Any] = []
    for cut in range(1, len(lines) + 1):
        first, second = FileJournal(tmp_path / f"{cut}"), FileJournal(tmp_path / f"{cut} again")
        first.path.write_bytes(b"".join(lines[:cut]))
        kit.resume(first.paused(), journal=second)
        for again in range(1, 3):
            second.path.write_bytes(b"".join(second.path.read_bytes().splitlines(keepends=True)[:again]))
            values.append(kit.resume(second.paused()).return_value)

    assert values == [10] * 2 * len(lines)


async def test_a_guarded_call_in_doubt_is_asked_about_even_with_an_approver_who_grants_all(tmp_path: Path) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done), sandbox=FakeSandbox(*CALLS), approver=approve_all)
    journal = FileJournal(tmp_path / "journal")
    await kit.execute_async("", journal=journal)
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal").write_bytes(b"".join(lines[:-2]))

    result = await kit.resume_async(journal.paused())

    assert [(call.tool, call.in_doubt) for call in result.suspended_calls] == [("pay", True)]
    assert done == ["find Oslo", "pay 3"]


async def test_a_granted_call_that_was_cut_off_is_in_doubt(tmp_path: Path) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done), sandbox=FakeSandbox(*CALLS))
    journal = FileJournal(tmp_path / "journal")
    first = await kit.execute_async("", journal=journal)
    await kit.resume_async(journal.paused(), grants=[first.suspended_calls[0].grant()], journal=journal)
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal").write_bytes(b"".join(lines[:-2]))

    result = await kit.resume_async(journal.paused())

    assert [(call.tool, call.in_doubt) for call in result.suspended_calls] == [("pay", True)]
    assert done == ["find Oslo", "pay 3"]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("answer", "repeated"),
    [
        (ApprovalRequest.grant, True),
        (ApprovalRequest.always, False),
        (lambda request: request.grant(user_input=object()), False),
        (lambda request: request.grant(override_args={"sum": 4}), True),
    ],
)
async def test_a_granted_call_of_an_idempotent_tool_that_was_cut_off_is_made_again_by_its_grant(
    tmp_path: Path, answer: Callable[[ApprovalRequest], Grant], repeated: bool, stored: bool
) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done, idempotent=True), sandbox=FakeSandbox(*CALLS))
    journal = FileJournal(tmp_path / "journal")
    first = await kit.execute_async("", journal=journal)
    await kit.resume_async(journal.paused(), grants=[answer(first.suspended_calls[0].request)], journal=journal)
    lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal").write_bytes(b"".join(lines[:-2]))
    paused = journal.paused()
    if stored:
        paused = PausedProgram.from_bytes(paused.to_bytes(KEY), KEY)

    result = await kit.resume_async(paused)

    assert result.is_paused is not repeated
    assert len(done) == 2 + repeated
    assert done[-1] == done[1]


async def test_a_call_that_was_cut_off_twice_is_asked_about_with_what_its_approver_made_of_it(tmp_path: Path) -> None:
    done: list[str] = []
    kit = Toolkit(paying(done), sandbox=FakeSandbox(*CALLS))
    journal = FileJournal(tmp_path / "journal")
    result, shown = await kit.execute_async("", journal=journal), list[Any]()
    for options in ({"override_args": {"sum": 4}}, {}):
        grant = result.suspended_calls[0].request.grant(**options)
        await kit.resume_async(result.paused or journal.paused(), grants=[grant], journal=journal)
        lines = (tmp_path / "journal").read_bytes().splitlines(keepends=True)
        (tmp_path / "journal").write_bytes(b"".join(lines[:-2]))

        result = await kit.resume_async(journal.paused(), journal=journal)
        request = result.suspended_calls[0].request
        shown.append((request.in_doubt, request.arguments["sum"]))

    assert shown == [(True, 4)] * 2
    assert done == ["find Oslo", "pay 4", "pay 4"]


async def test_a_run_that_is_cancelled_leaves_its_calls_in_doubt(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @ez_tool
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    kit = Toolkit([wait], sandbox=FakeSandbox(("wait", {})))
    journal = FileJournal(tmp_path / "journal")
    task = asyncio.create_task(kit.execute_async("", journal=journal))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])

    result = await kit.resume_async(journal.paused())

    assert [call.in_doubt for call in result.suspended_calls] == [True]


class SlowJournal:
    """A journal that is not done with an entry of one kind until it is let go on."""

    waited = 0.0

    def __init__(self, kind: str) -> None:
        self.entries: list[JournalEntry] = []
        self._kind = kind
        self.held = asyncio.Event()
        self.go = asyncio.Event()

    def append(self, entry: JournalEntry) -> None:
        self.entries.append(JournalEntry.from_dict(json.loads(json.dumps(entry.to_dict()))))

    async def flush(self) -> None:
        if self.entries[-1].kind == self._kind:
            self.held.set()
            await self.go.wait()

    async def read(self) -> list[JournalEntry]:
        return self.entries


async def test_a_call_is_not_made_before_it_is_written_down_that_it_may_be() -> None:
    done: list[str] = []
    journal = SlowJournal("started")
    running = asyncio.create_task(
        Toolkit(paying(done), sandbox=FakeSandbox(CALLS[0])).execute_async("", journal=journal)
    )
    await journal.held.wait()
    before = list(done)
    journal.go.set()
    await running

    assert (before, done) == ([], ["find Oslo"])


async def test_a_program_gets_a_result_only_when_it_is_written_down() -> None:
    journal, sandbox = SlowJournal("ended"), FakeSandbox(CALLS[0])
    running = asyncio.create_task(Toolkit(paying([]), sandbox=sandbox).execute_async("", journal=journal))
    await journal.held.wait()
    before = list(sandbox.replies)
    journal.go.set()
    await running

    assert (before, sandbox.replies) == ([], [Value(3)])


@pytest.mark.parametrize(("call", "kind"), [(CALLS[0], "started"), (CALLS[0], "ended"), (CALLS[1], "suspended")])
async def test_a_call_that_the_program_gives_up_while_it_is_written_down_was_given_up(call: Any, kind: str) -> None:
    journal = SlowJournal(kind)

    class GivesUp(FakeSandbox):
        async def run(self, program: Program, host: Host) -> SandboxResult:
            asked = asyncio.ensure_future(host.call(call[0], [], call[1]))
            await journal.held.wait()
            asked.cancel()
            await asyncio.wait([asked])
            return SandboxResult(1, "", "", None, (), 1)

    await Toolkit(paying([]), sandbox=GivesUp()).execute_async("", journal=journal)

    assert [entry.kind for entry in journal.entries][-3:] == [kind, "cancelled", "done"]
    left = paused_program_in(journal.entries[:-1])
    assert left is not None
    [given_up] = left.calls
    assert (given_up.cancelled, given_up.reply, given_up.suspended, given_up.in_doubt) == (True, None, None, False)


# --- streams ---------------------------------------------------------------------------------------------------------


class Counting:
    """A tool that counts, and one that waits for a person."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.closed = 0

    def tools(self, **options: Any) -> list[Tool[..., Any]]:
        @ez_tool(**options)
        async def count(to: int) -> Any:
            try:
                for number in range(to):
                    self.given.append(number)
                    yield number
            finally:
                self.closed += 1

        @ez_tool(requires_approval=True)
        async def pay(sum: int) -> int:
            return sum

        return [count, pay]


async def whole(asks: Asks) -> Any:
    values = [value async for value in asks.stream("count", 3)]
    return [*values, await asks.call("pay", 9)]


async def early(asks: Asks) -> Any:
    stream = asks.stream("count", 3)
    first = await anext(stream)
    await stream.aclose()
    return [first, await asks.call("pay", 9)]


async def between(asks: Asks) -> Any:
    return [await asks.call("pay", value) async for value in asks.stream("count", 2)]


async def test_the_values_of_a_stream_are_given_again(tmp_path: Path) -> None:
    counting = Counting()
    kit = Toolkit(counting.tools(), sandbox=ScriptSandbox(whole=whole))
    first = await kit.execute_async("# whole")
    assert first.paused is not None

    paused = PausedProgram.from_bytes(first.paused.to_bytes(KEY), KEY)
    result = await kit.resume_async(paused, grants=[first.suspended_calls[0].grant()])

    assert (result.return_value, counting.given, counting.closed) == ([0, 1, 2, 9], [0, 1, 2], 1)


async def test_a_stream_that_was_left_early_is_left_early_again() -> None:
    counting = Counting()
    kit = Toolkit(counting.tools(), sandbox=ScriptSandbox(early=early))
    first = await kit.execute_async("# early")
    assert first.paused is not None

    result = await kit.resume_async(first.paused, grants=[first.suspended_calls[0].grant()])

    assert (result.return_value, counting.given, counting.closed) == ([0, 9], [0], 1)


async def test_a_stream_that_was_cut_by_the_pause_is_in_doubt() -> None:
    counting = Counting()
    kit = Toolkit(counting.tools(), sandbox=ScriptSandbox(between=between))
    first = await kit.execute_async("# between")
    assert first.paused is not None

    second = await kit.resume_async(first.paused, grants=[first.suspended_calls[0].grant()])
    assert second.paused is not None
    third = await kit.resume_async(second.paused, Run(approver=approve_all))

    for result in (second, third):
        assert [(call.tool, call.in_doubt) for call in result.suspended_calls] == [("count", True)]
    assert counting.given == [0]


async def test_an_idempotent_stream_goes_on_after_the_values_that_were_taken() -> None:
    counting = Counting()
    kit = Toolkit(counting.tools(idempotent=True), sandbox=ScriptSandbox(between=between))
    first = await kit.execute_async("# between")
    assert first.paused is not None

    second = await kit.resume_async(first.paused, grants=[first.suspended_calls[0].grant()])
    assert second.paused is not None
    third = await kit.resume_async(second.paused, Run(), grants=[second.suspended_calls[0].grant()])
    assert third.paused is None

    assert third.return_value == [0, 1]
