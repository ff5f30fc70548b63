"""Durable programs: workflows with a journal of their calls, so that a crash in mid-program repeats none."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast
from uuid import uuid4

from dbos import DBOS
from dbos._context import current_owner_xid

from toolcrib._numbers import count_text, require_seconds
from toolcrib.adapters.dbos._answers import DbosAnswers
from toolcrib.adapters.dbos._client import Client, Transaction
from toolcrib.adapters.dbos._engine import Engine, current_engine, queue_owners, require_served, standing_routines
from toolcrib.adapters.dbos._placement import ATTRIBUTES, KEY, Placement, Queue
from toolcrib.adapters.dbos._program_journal import (
    ProgramJournal,
    asked_by,
    cancel_run,
    has_paused,
    open_calls,
    paused_on,
    program_run,
    requests_of_paused,
)
from toolcrib.adapters.dbos._program_result import result_from_dict, result_to_dict
from toolcrib.adapters.dbos._schedules import Schedule, apply_schedule
from toolcrib.adapters.dbos._workflow import held_approvals, workflow
from toolcrib.approvals import ApprovalStore
from toolcrib.calls import StoredFields, versioned
from toolcrib.code import (
    ExecutionResult,
    PausedProgram,
    Toolkit,
    paused_program_in,
    tools_in,
)
from toolcrib.durable import (
    AnswerStore,
    RetryPolicy,
    UnknownHereError,
    WorkStore,
    answered_entries,
    deny_cancelled,
    outlast,
)
from toolcrib.errors import (
    ApprovalError,
    EngineError,
    PausedProgramError,
    ReplayDiverged,
    SandboxError,
    SandboxUnavailable,
    ToolcribError,
    UnregisteredError,
    explain_options,
)
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run, current_run, open_run
from toolcrib.record import current_activity
from toolcrib.registry import Registry
from toolcrib.sandbox import replayable
from toolcrib.tools import Tool

PROGRAM = "toolcrib.program"
_POLL_SECONDS = 0.25
_LOOKS = 10  # for answers; at the first of so many also for those that were used up
_ERROR_CHARS = 500  # of a program's error, in its workflow's outcome

toolkits: Registry[DurableToolkit] = Registry(UnregisteredError)
"""The durable toolkits of this process, by name: where a worker looks for the one that a program is for."""
queue_owners.append(toolkits)


@explain_options()
class DurableToolkit(DbosAnswers):
    """A toolkit whose programs are durable: enqueued by any process, run by any worker, and taken up after a crash.

    Each call is written down before it is made and when it has ended. A program that is taken up runs again from its
    start, its earlier calls answered from that journal. A call that had begun and not ended is in doubt: one of an
    `idempotent` tool is made again, and any other waits for a person. A program that waits for a person holds no place
    in the queue, and goes on when there is an answer.

    Args:
        toolkit: The toolkit that runs the programs; it may use any sandbox.
        name: The name by which workers know it; the same in every process.
        queue: Where its programs wait, a name or a `Queue` with limits.
        run: The run that calls are part of, with its deps, principal and sinks, or what makes one anew for each
            program; one of its own for each when None.
        client: The client with which programs are enqueued where no engine runs in the process.
        replace: Take the place of one that has the name already, as when a notebook cell is run again.

    Raises:
        DuplicateNameError: Another durable toolkit of this process has the name.
        EngineError: As for `DurableAgent`.
    """

    _chains = False

    def __init__(
        self,
        toolkit: Toolkit,
        queue: Queue | str = "programs",
        *,
        name: str = "toolkit",
        run: Run | Callable[[], Run] | None = None,
        client: Client | None = None,
        replace: bool = False,
    ) -> None:
        if not isinstance(toolkit, Toolkit):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            mend = "as in DurableToolkit(Toolkit(tools))"
            raise TypeError(f"DurableToolkit is made of a Toolkit, {mend}, and not of {toolkit!r:.80}")
        self.toolkit, self.name, self._client = toolkit, name, client
        self._given_run = run if callable(run) else open_run(run)  # which refuses what is no run
        self.queue = Queue(queue) if isinstance(queue, str) else queue
        if client is None:
            require_served(self.queue)
        self._replaying: Toolkit | None = None
        toolkits.register(name, self, replace=replace)

    @property
    def client(self) -> Client:
        """The client with which its programs are put and answered."""
        return self._client or current_engine().client

    def use(self, client: Client) -> None:
        """Enqueue its programs with this client, where it was made without one."""
        self._client = self._client or client

    def _tool(self, name: str) -> Tool[..., Any]:
        return self.toolkit.get_tool(name)

    @explain_options()
    async def start(
        self,
        code: str,
        *,
        placement: Placement | None = None,
        principal: str | None = None,
        conversation_id: str | None = None,
        connection: Transaction | None = None,
    ) -> DurableProgram:
        """Enqueue a program, and return what follows it.

        Args:
            code: The program.
            placement: Its id, priority, key and times; an id of its own when None.
            principal: On whose behalf its calls are made; that of the tool that starts it when None.
            conversation_id: The conversation that it is part of, which its requests show; that of the tool that starts
                it when None, or else of the run.
            connection: As in `DurableAgent.put`.
        """
        tools = tools_in(code, self.toolkit.function_names)
        self.queue.check(placement and placement.partition)
        return await enqueue_program(
            self.client,
            self.name,
            self.queue.name,
            code,
            placement,
            principal,
            conversation_id,
            tools=tools,
            connection=connection,
        )

    async def schedule(
        self,
        schedule: Schedule,
        code: str,
        *,
        placement: Placement | None = None,
        principal: str | None = None,
        conversation_id: str | None = None,
    ) -> None:
        """Enqueue a program at each tick of a schedule, in place of a schedule of that name.

        Args:
            code: The program.
            placement: As in `start`, but for the id, which each program has of its own: with a key, a tick is skipped
                while the program of an earlier one waits or runs.
            principal: As in `start`, and so is `conversation_id`.

        Raises:
            EngineError: Another application of the database has the schedule's name.
        """
        tools = tools_in(code, self.toolkit.function_names)
        data = _program_data("", self.name, self.queue.name, code, principal, conversation_id, tools)
        placement = placement or Placement("")
        if placement.attributes:
            data[ATTRIBUTES] = dict(placement.attributes)
        self.queue.check(placement.partition)
        await asyncio.to_thread(apply_schedule, self.client, schedule, PROGRAM, self.queue.name, data, placement)

    def opened(
        self, data: Mapping[str, Any], engine: Engine, journal: ProgramJournal, begun: Mapping[str, Mapping[str, Any]]
    ) -> Run:
        """Return the run of one program's calls; `begun` is what is known of those that were cut off or failed."""
        run: str = data["run"]
        arguments = open_run(self._given_run) or Run(run)
        approvals = cast("AnswerStore", arguments.approvals or engine.client.approvals)
        retried = [call_id for call_id, known in begun.items() if "failed with" in known]
        held_store = held_approvals(engine.client, approvals)
        store = WorkStore(
            approvals, waits=journal.waits, fence=engine.may_begin, work_id=run, retried=retried, held_store=held_store
        )
        recorded = engine.recorded(arguments, self.toolkit.sinks)
        if data.get("late"):
            # what was read before it was written: another process has it
            arguments.read_input(ModelInput("restored", is_lost=True))

        async def fence() -> None:
            with journal.waits.counted():
                await engine.may_begin()

        return recorded.view(
            principal=data["principal"] or arguments.principal,
            agent=data.get("agent") or arguments.channel.agent or self.name,
            parent_id=data.get("parent") or arguments.channel.parent_id,
            conversation_id=data.get("conversation_id") or arguments.channel.conversation_id,
            approvals=store,
            program_id=run,
            begun=begun,
            fence=fence,
        )

    def require(self, names: Iterable[str]) -> None:
        """Return if this toolkit has the functions of these names, which a program calls.

        Raises:
            UnknownHereError: It lacks one.
        """
        for name in names:
            if name not in self.toolkit.function_names:
                raise UnknownHereError(f"the tool `{name}` of the toolkit `{self.name}`")

    async def run_journalled(
        self, code: str, run: Run, journal: ProgramJournal, paused: PausedProgram | None
    ) -> ExecutionResult:
        """Run a program, or take one up, inside its workflow."""
        if self._replaying is None:
            self._replaying = self.toolkit.with_sandbox(replayable(self.toolkit.sandbox))
        if paused is None:
            return await self._replaying.execute_async(code, run, journal=journal)
        return await self._replaying.resume_async(paused, run, journal=journal)  # its answers are in the run's store


@dataclass(frozen=True, slots=True)
class DurableProgram:
    """Follows a durable program; any process may, by its id.

    Attributes:
        id: The program's, and that of the workflow which runs it first.
        client: The client that it asks.
    """

    id: str
    client: Client

    async def state(self) -> Literal["waiting", "running", "suspended", "done", "cancelled", "failed"]:
        """Return the state: `waiting` in its queue, `suspended` until it has an answer, `failed`, and others.

        Raises:
            EngineError: Nothing has this id.
        """
        run = await asyncio.to_thread(program_run, self.client, self.id)
        if run is not None and run.state != "running":
            return "suspended" if run.state == "paused" else run.state
        found = await self.client.status(self.id if run is None else stretch_id(self.id, run.generation))
        if run is None and found is None:
            raise EngineError(f"there is no program {self.id} in {self.client.database}")
        status = "" if found is None else str(found.status)
        if "CANCELLED" in status:
            return "cancelled"
        if "ERROR" in status or "EXCEEDED" in status:
            return "failed"
        return "waiting" if run is None or status in ("ENQUEUED", "DELAYED") else "running"

    async def settled(self, *, polling: float = _POLL_SECONDS) -> ExecutionResult:
        """Return the result as soon as the program has ended, or waits for a person.

        Raises:
            DurableFailure: Its workflow raised, or was cancelled.
            EngineError: Nothing has this id.
        """
        require_seconds("settled", "polling", polling)
        while True:
            run = await asyncio.to_thread(program_run, self.client, self.id)
            if run is not None and run.state in ("paused", "done") and run.result is not None:
                if run.state == "done":  # its workflow ends a little later; before that nobody can retry it
                    await self.client.result(stretch_id(self.id, run.generation), polling=polling)
                return result_from_dict(run.result)
            generation = 1 if run is None else run.generation
            if await self.state() in ("failed", "cancelled"):
                await self.client.result(stretch_id(self.id, generation))
            await asyncio.sleep(polling)

    async def result(self, *, polling: float = _POLL_SECONDS) -> ExecutionResult:
        """Return the result when the program has ended, however often it waits for a person before that.

        Raises:
            DurableFailure: Its workflow raised, or was cancelled.
            EngineError: Nothing has this id.
        """
        while True:
            result = await self.settled(polling=polling)
            if not result.is_paused:
                return result
            await asyncio.sleep(polling)

    async def cancel(self) -> bool:
        """Cancel it: it makes no further call and never goes on; return whether it had yet to end.

        Raises:
            EngineError: Nothing has this id.
        """
        before = await self.state()
        await cancel_program(self.client, self.id)
        return before in ("waiting", "running", "suspended")


async def cancel_program(client: Client, program_id: str) -> str:
    """Stop a program however far it is, and return the id of the workflow that was cancelled.

    Its requests are denied, so that they cannot be answered any more.
    """
    await asyncio.to_thread(cancel_run, client, program_id)  # from here on no workflow takes it up
    run = await asyncio.to_thread(program_run, client, program_id)
    generation = 1 if run is None else run.generation
    after = stretch_id(program_id, generation + 1)  # it may wait in its queue
    work_id = stretch_id(program_id, generation) if await client.status(after) is None else after
    await client.dbos.cancel_workflow_async(work_id)
    asked, calls = await asyncio.to_thread(asked_by, client, program_id)
    if calls:  # one of them may have asked, and the journal not have it
        pending = [entry.request for entry in await client.approvals.list(pending=True)]
        asked += [request.id for request in pending if request.call_id in calls and request.id not in asked]
    for request_id in asked:
        await deny_cancelled(client.approvals, request_id, "program")
    return work_id


@explain_options()
async def enqueue_program(
    client: Client,
    toolkit: str,
    queue: str,
    code: str,
    placement: Placement | None = None,
    principal: str | None = None,
    conversation_id: str | None = None,
    *,
    tools: Iterable[str] = (),
    connection: Transaction | None = None,
) -> DurableProgram:
    """Enqueue a program for a worker that has the durable toolkit of this name; this process need not have it.

    Args:
        tools: The functions that it calls, where this process knows them: a worker that lacks one leaves the program to
            another.
        connection: As in `DurableAgent.put`.

    What a tool enqueues says so: its requests name the agent and the conversation of that tool's run.
    """
    placement = placement or Placement(f"program-{uuid4().hex}")
    data = _program_data(placement.id, toolkit, queue, code, principal, conversation_id, tools)
    return DurableProgram(await client.enqueue(PROGRAM, queue, data, placement, connection), client)


def _program_data(
    run: str,
    toolkit: str,
    queue: str,
    code: str,
    principal: str | None,
    conversation_id: str | None,
    tools: Iterable[str],
) -> dict[str, Any]:
    data: dict[str, Any] = {"run": run, "toolkit": toolkit, "queue": queue, "code": code}
    data |= {"principal": principal, "generation": 1, "tools": list(tools)}
    if here := current_run():
        data["principal"] = principal or here.principal
        data["late"] = "features" in here.counted()  # they have read what the process of the program has not
        conversation_id = conversation_id or here.channel.conversation_id
    asked_by = {"agent": here and here.channel.agent, "parent": current_activity(), "conversation_id": conversation_id}
    data |= {name: value for name, value in asked_by.items() if value is not None}
    return versioned("ProgramWork", data)


async def continue_programs(engine: Engine) -> None:
    """Enqueue paused programs whose requests are answered.

    Every worker may do it: a continuation has an id of its own, and is enqueued once.
    """
    client, store = engine.client, engine.client.approvals
    for look in itertools.count():
        if await asyncio.to_thread(has_paused, client):
            answered = {entry.request.id for entry in await answered_entries(store)}
            if look % _LOOKS == 0:
                # an execution that was cut off may use an answer up after the one in its place found none, and paused
                answered |= await store.used(await asyncio.to_thread(requests_of_paused, client))
            for run, generation in await asyncio.to_thread(paused_on, client, answered):
                await _enqueue_next(client, run, generation + 1)
        await engine.clock.sleep(engine.answers)


standing_routines.append(continue_programs)


async def _enqueue_next(client: Client, run: str, generation: int) -> None:
    """Enqueue what goes on with a program, with the words that it was started with."""
    first = await client.status(run)
    data: Mapping[str, Any] = {} if first is None or first.input is None else first.input["args"][0]
    if data:
        priority, partition = (first.priority or 0, first.queue_partition_key) if first else (0, None)
        placement = Placement(stretch_id(run, generation), priority, data.get(KEY), partition=partition)
        await client.enqueue(PROGRAM, data["queue"], {**data, "generation": generation}, placement)


def stretch_id(run: str, generation: int) -> str:
    """Return the id of the workflow that runs a program from one pause to the next; the first has the run's."""
    return run if generation == 1 else f"{run}-{generation}"


@workflow(PROGRAM)
async def _run_program(data: dict[str, Any]) -> dict[str, Any]:
    """Run a program as far as it comes: to its end, or to where it waits for a person."""
    data = StoredFields("ProgramWork", data)
    engine, run = current_engine(), data["run"]
    try:
        toolkit = toolkits.get(data["toolkit"])
    except UnregisteredError as error:
        raise UnknownHereError(f"the toolkit `{error.name}`") from error
    toolkit.require(data.get("tools", ()))  # older versions kept none
    workflow_id = str(DBOS.workflow_id)
    journal = ProgramJournal(engine.client, run, workflow_id, current_owner_xid(workflow_id), engine.worker_id)
    claimed = partial(journal.claim, data["generation"], data["toolkit"], data["queue"])
    ended = await outlast(lambda: asyncio.to_thread(claimed))
    if ended is not None:
        return ended
    await engine.executions.stop_earlier(workflow_id)
    store: ApprovalStore = engine.client.approvals
    result: ExecutionResult | SandboxError | SandboxUnavailable
    try:
        entries = await outlast(journal.read)
        paused = paused_program_in(entries)
        if paused is not None:
            toolkit.require(paused.functions)
        begun = await engine.begun_before(open_calls(entries))
        run = toolkit.opened(data, engine, journal, begun)
        store = run.approvals or store
        running = asyncio.create_task(
            toolkit.run_journalled(data["code"], run, journal, paused), name=f"toolcrib: program {data['run']}"
        )
        await engine.executions.finish(running, workflow_id)
        result = running.result()
    except _LASTING as error:
        result = ExecutionResult(success=False, error=f"{type(error).__name__}: {error}")
    except (SandboxError, SandboxUnavailable) as error:
        result = error
    finally:
        await journal.drain()
    if not isinstance(result, ExecutionResult):
        result = await _try_again(engine, workflow_id, result, RetryPolicy(toolkit.queue.tries))
    for call in result.suspended_calls:
        await outlast(partial(store.put, call.request))  # one that is in doubt is in no store yet
    stored = result_to_dict(replace(result, records=()))
    state = "done" if result.paused is None else "paused"
    if not await outlast(lambda: asyncio.to_thread(journal.finish, state, stored)):
        return {"state": "cancelled"}
    error = None if state == "paused" or result.error is None else result.error[:_ERROR_CHARS]
    return {"state": state, "success": result.success, **({} if error is None else {"error": error})}


async def _try_again(engine: Engine, work_id: str, failed: ToolcribError, retry: RetryPolicy) -> ExecutionResult:
    """Delay a program whose sandbox failed until its next try, and return its result after the last one.

    Raises:
        CancelledError: It waits now.
    """
    error = f"{type(failed).__name__}: {failed}"
    tries = await engine.put_off(work_id, error, retry)
    if tries < retry.attempts:
        raise asyncio.CancelledError from failed
    times = count_text(tries, "time")
    message = f"the sandbox could not run this program, which was tried {times}; the last time it was {error}"
    return ExecutionResult(success=False, error=f"{type(failed).__name__}: {message}")


_LASTING: tuple[type[ToolcribError], ...] = (
    ApprovalError,
    PausedProgramError,
    ReplayDiverged,
)
"""Errors that keep a program from going on however often it is tried: its result names them."""
