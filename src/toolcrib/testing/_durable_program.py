"""The door of durable programs: a program in a queue, run as a workflow by an engine in a thread."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from toolcrib.adapters.dbos import DurableToolkit
from toolcrib.calls import Outcome
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.testing._code_doors import outcome_of, program_of
from toolcrib.testing._doors import Ability, Door, Visit
from toolcrib.testing._durable import OFFICE, VISITS
from toolcrib.testing._fakes import RecordingSink

__all__ = ["DurableProgramDoor", "durable_program_doors"]


class DurableProgramDoor(Door):
    """A durable program of one line, which calls the tool."""

    title = "durable program"
    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "run"})

    async def carry(self, visit: Visit) -> Outcome:
        watch = RecordingSink()
        run = visit.run.with_sinks(watch)
        toolkit = DurableToolkit(Toolkit(visit.toolset), VISITS, name=f"visit_{uuid4().hex}", run=run)
        result = await OFFICE.run(self._settled(toolkit, program_of(visit)))
        return outcome_of(visit, watch, result)

    async def _settled(self, toolkit: DurableToolkit, code: str) -> ExecutionResult:
        return await (await toolkit.start(code)).settled(polling=0.005)


durable_program_doors: tuple[Door, ...] = (DurableProgramDoor(),)
