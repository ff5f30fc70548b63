"""A program whose executions are cut off anywhere: its call is made as often as a person agreed, and asked about once.

The executions run in one event loop, and each may be killed, stopped, handed over, or stand still, wherever it waits
for its journal, its approval store or its fence. The journal, and what is held of the store, take writes of the
execution that has the program alone.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.effort import IS_FULL
from toolcrib.adapters.dbos._program_journal import open_calls
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.approvals._executions import active_executions
from toolcrib.code import ExecutionResult, JournalEntry, Toolkit, paused_program_in
from toolcrib.durable import WorkStore, answered_entries
from toolcrib.errors import register_signal
from toolcrib.pipeline import Run
from toolcrib.sandbox import replayable
from toolcrib.testing import FakeSandbox
from toolcrib.tools import Tool, tool

_STEPS = 4_000  # of the event loop, in which a program comes to its end
_LIKELY = 0.12  # how likely an execution is cut off wherever it waits


class TakenOverError(BaseException):
    """Another execution has the program."""


register_signal(TakenOverError)


@dataclass
class World:
    """A program, as its database has it, and what was done outside.

    Attributes:
        entries: The journal.
        owners: The execution that has the program, by the number of the pause before it.
        waiting: The executions that are to begin, by that number.
        asked: When and where the call began of each question, by its id; empty for one that needs approval.
        agreed: How often a person was asked about a call that had been made, and agreed to make it again.
        cuts: How many executions may still be cut off.
    """

    chance: random.Random
    cuts: int
    store: MemoryApprovalStore = field(default_factory=MemoryApprovalStore)
    entries: list[JournalEntry] = field(default_factory=list[JournalEntry])
    owners: dict[int, int] = field(default_factory=dict[int, int])
    waiting: list[int] = field(default_factory=lambda: [1])
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    asked: dict[str, str] = field(default_factory=dict[str, str])
    result: ExecutionResult | None = None
    pauses: int = 0
    effects: int = 0
    agreed: int = 0

    async def live(self) -> None:
        """Begin executions, and answer as a person does, until the program has ended."""
        for _ in range(_STEPS):
            await asyncio.sleep(0)
            if self.result is not None and not self.result.is_paused:
                break
            if self.waiting and self.chance.random() < 0.3:
                self._begin(self.waiting.pop(0))
            if self.chance.random() < 0.1:
                await self._answer()
            if self.result is not None and self.chance.random() < 0.1:
                await self._go_on(self.result)
        for _ in range(200):  # what stood still finds out that others have ended the program
            await asyncio.sleep(0)

    async def end(self) -> None:
        while running := [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=0.01)
        active_executions.clear()

    def _begin(self, number: int) -> None:
        execution = Execution(self, len(self.tasks) + 1, number)
        self.owners[number] = execution.id
        self.tasks.append(asyncio.create_task(execution.run()))

    async def _answer(self) -> None:
        for entry in await self.store.list(pending=True):
            request = entry.request
            self.asked[request.id] = str(request.metadata["begun"]) if request.in_doubt else ""
            self.agreed += request.in_doubt and self.effects > 0
            await self.store.answer(request.grant("ann"))

    async def _go_on(self, result: ExecutionResult) -> None:
        ids = {request.id for request in result.suspended}
        answered = {entry.request.id for entry in await answered_entries(self.store)} | await self.store.used(ids)
        if ids & answered:
            self.result, self.pauses = None, self.pauses + 1
            self.waiting.append(self.pauses + 1)


class Execution:
    """One execution of the program, which is its own journal and its own view of the approval store."""

    waited = 0.0

    def __init__(self, world: World, id: int, number: int) -> None:
        self.id, self._world, self._number = id, world, number
        self._is_lost = self._stops = False
        self._active: set[str] = set()
        self._next: list[JournalEntry] = []

    async def run(self) -> None:
        """Run the program as far as it comes."""
        world = self._world
        try:
            await self._place()
            self._require_held()
            paused = paused_program_in(world.entries)
            begun = {id: {"begun": str(fields["begun"])} for id, fields in open_calls(world.entries).items()}
            held_store = self._store(self._require_held)
            store = WorkStore(self._store(), fence=self._fence, work_id="p", held_store=held_store)
            run = Run("p").view(approvals=store, program_id="p", begun=begun, fence=self._fence)
            toolkit = Toolkit([self._tool()], sandbox=FakeSandbox(("pay", {"cents": 3})))
            toolkit = toolkit.with_sandbox(replayable(toolkit.sandbox))
            program = toolkit.execute_async("pay(3)", run, journal=self)
            if paused is not None:
                program.close()
                program = toolkit.resume_async(paused, run, journal=self)
            result = await program
            for call in result.suspended_calls:
                await store.put(call.request)
            await self._place()
            self._require_held()
            world.result = result
        except TakenOverError:
            return
        except asyncio.CancelledError:
            self._leave()

    def append(self, entry: JournalEntry) -> None:
        if entry.kind == "started":
            entry = replace(entry, fields={**entry.fields, "begun": f"{len(self._world.entries)} by {self.id}"})
        if entry.kind != "done":
            self._next.append(entry)

    async def flush(self) -> None:
        await self._place()
        self._require_held()
        self._world.entries += [JournalEntry.from_dict(json.loads(entry.to_json())) for entry in self._next]
        self._next.clear()
        await self._place()

    async def read(self) -> Sequence[JournalEntry]:
        return tuple(self._world.entries)

    def _tool(self) -> Tool[..., Any]:
        @tool(requires_approval=True, register=False)
        async def pay(cents: int) -> str:
            self._world.effects += 1
            await self._place()
            return "paid"

        return pay

    def _store(self, check: Callable[[], None] = lambda: None) -> Any:
        execution, kept = self, self._world.store

        class Store(MemoryApprovalStore):
            async def _run(self, work: Any, *, write: bool) -> Any:
                await execution._place()
                before = set(active_executions)
                try:
                    check()  # in the transaction
                    return await kept._run(work, write=write)
                finally:
                    execution._active |= active_executions - before
                    await execution._place()

        return Store()

    async def _fence(self) -> None:
        await self._place()
        if self._is_lost and not self._stops:
            await asyncio.Event().wait()

    def _require_held(self) -> None:
        if self._world.owners.get(self._number) != self.id or self._world.result is not None:
            raise TakenOverError

    def _leave(self) -> None:
        if self._world.owners.get(self._number) == self.id:
            del self._world.owners[self._number]
            self._world.waiting.append(self._number)

    async def _place(self) -> None:
        """Pass a place at which this execution may be cut off."""
        world = self._world
        await asyncio.sleep(0)
        if self._is_lost or not world.cuts or world.chance.random() > _LIKELY:
            return
        world.cuts -= 1
        self._is_lost = True
        match world.chance.choice(["kill", "stop", "hand over", "stand still"]):
            case "kill":
                active_executions.difference_update(self._active)
                self._leave()
                await asyncio.Event().wait()
            case "stop":
                self._stops = True
                world.tasks[self.id - 1].cancel()
            case "hand over":
                self._leave()
            case _:
                self._leave()
                for _ in range(world.chance.choice([1, 5, 20, 60, 200])):
                    await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(200 if IS_FULL else 40))
async def test_a_program_that_is_cut_off_anywhere_asks_once_and_does_what_was_agreed(seed: int) -> None:
    chance = random.Random(seed)
    world = World(chance, chance.choice([1, 2, 3, 4]))

    await world.live()
    left = await world.store.unended()
    await world.end()

    assert world.result is not None
    assert world.result.success
    assert 0 < world.effects <= 1 + world.agreed
    assert [begun for begun, count in Counter(world.asked.values()).items() if count > 1] == []
    assert left == ()
