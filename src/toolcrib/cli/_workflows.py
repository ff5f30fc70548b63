"""`toolcrib workflows`, `workers` and `schedules`: durable work by its state, its workers, and what enqueues it."""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from toolcrib._numbers import count_text
from toolcrib._run_sync import run_sync
from toolcrib.calls import now
from toolcrib.cli._commands import Commands
from toolcrib.cli._database import DatabaseOption, shown_name
from toolcrib.cli._formatting import JsonOption, cell_text, console, print_json, say, table_of, write
from toolcrib.cli._status import Status, confirm, exit_on_error
from toolcrib.cli._times import time_of
from toolcrib.cli._work_page import printed_result, value_of, when, work_page
from toolcrib.cli._worker import attributes_of, durable
from toolcrib.errors import EngineError

workflows = Commands(name="workflows", help="Durable turns and programs.", no_args_is_help=True)
workers = Commands(name="workers", help="Workers that run durable work.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The workflow's id.", show_default=False)]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=TEXT", help="Only those with this attribute; give it again for several."),
]
_STATES = {
    "cancel": ("delayed", "waiting", "running", "suspended"),
    "resume": ("cancelled", "given up"),
    "retry": ("failed",),
}
"""The states of the work that a command is for."""
_STYLES = {
    "done": "green",
    "failed": "red",
    "rejected": "yellow",
    "given up": "red",
    "cancelled": "red",
    "suspended": "yellow",
    "lost": "red",
}
_WIDE = 60  # characters of one cell
_OPEN = ("delayed", "waiting", "running")
_LOOKS_AGAIN = 0.25  # seconds


@contextmanager
def work_client(database: str | None) -> Generator[tuple[Any, Any]]:
    """Yield the module of durable work and a client of the database; an error ends the command in a line."""
    with exit_on_error():
        client = durable().open_client(database, create=False)
        try:
            yield importlib.import_module("toolcrib.adapters.dbos"), client
        finally:
            client.close()


@workflows.command("list")
def list_workflows(
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help="Only the delayed, waiting, running, suspended, done, rejected, failed, cancelled, given up.",
        ),
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", help="Only those of this queue.")] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="Only those of this partition.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Only those of this agent, tool or toolkit, or `agent: tool`."),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option("--principal", metavar="NAME", help="Only programs and suspended turns on behalf of this one."),
    ] = None,
    attribute: AttributeOption = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="WORDS",
            help="Only those with these words in id, agent, tool, principal, conversation, key, schedule, partition or "
            "attributes.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only those enqueued then or later: 2h, 7d, or 2030-01-31T12:00."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Only those enqueued before then, or that day."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many.")] = 50,
    start: Annotated[int, typer.Option("--start", metavar="N", min=0, help="Leave out the latest N.")] = 0,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List turns and programs, the latest first."""
    with work_client(database) as (module, client):
        known = sorted(module.WORK_STATES)
        if state is not None and state not in known:
            hint = ". Did you mean suspended?" if state in ("paused", "pending") else ""
            raise typer.BadParameter(f"{state!r} is not one of {', '.join(known)}{hint}", param_hint="--state")
        found = module.list_work(
            client,
            state=state,
            queue=queue,
            partition=partition,
            name=name,
            principal=principal,
            attributes=attributes_of(attribute),
            text=search,
            since=time_of(since, "--since"),
            until=time_of(until, "--until", to_end=True),
            limit=limit,
            start=start,
        )
    if as_json:
        print_json([work.to_dict() for work in found])
    elif found:
        rows = [
            (w.id, w.kind, w.target, _place(w), w.state, w.worker, w.attempts, when(w.created_at), _why(w))
            for w in found
        ]
        console().print(work_table(("id", "kind", "of", "queue", "state", "worker", "begun", "since", "why"), rows))
    else:
        say(f"there is no such work in {shown_name(database)}")


@workflows.command()
def show(work_id: IdArgument, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one workflow: its request, its steps or calls, and its result."""
    with work_client(database) as (module, client):
        work, more = module.show_work(client, work_id)
    if as_json:
        print_json({**work.to_dict(), **more})
        return
    write(work_page(work, more))


@workflows.command()
def result(
    work_id: IdArgument,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Wait no longer.", show_default="without end"),
    ] = None,
    through: Annotated[bool, typer.Option("--through", help="Wait for people too, in place of exit status 3.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Wait until work has ended, and print its result; exit status 1 where it failed, 3 where it waits for a person."""
    until = None if timeout is None else time.monotonic() + timeout
    with work_client(database) as (module, client):
        work = module.find_work(client, work_id)
        while work.state in _OPEN or (through and work.state == "suspended"):
            if until is not None and time.monotonic() >= until:
                say(f"{work.id} is {work.state} after {timeout:g} s")
                raise typer.Exit(Status.FAILED)
            time.sleep(_LOOKS_AGAIN)
            work = module.find_work(client, work_id)
        work, more = module.show_work(client, work_id)
    if as_json:
        print_json({**work.to_dict(), "result": value_of(work, more)})
    elif work.state == "done":
        write(printed_result(work, more))
    else:
        say(f"{work.id} is {work.state}" + (f": {why}" if (why := _why(work)) else ""))
    raise typer.Exit({"done": Status.DONE, "suspended": Status.SUSPENDED}.get(work.state, Status.FAILED))


@workflows.command()
def fork(
    work_id: IdArgument,
    step: Annotated[
        int,
        typer.Option(
            "--from", metavar="N", min=1, help="The first call of a program to be made again, as `show` numbers them."
        ),
    ] = 1,
    new_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The id of the new work.", show_default="one of its own")
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue work that does again what other work did, from a step on, and print its id; what came before is kept."""
    with work_client(database) as (module, client):
        forked = module.fork_work(client, work_id, step, id=new_id)
    if as_json:
        print_json(forked.to_dict())
    else:
        write(f"{forked.id}\n")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The choice of work by ids, or of all work that fits."""

    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The workflows' ids.", show_default=False)
    ] = None
    everything: Annotated[
        bool, typer.Option("--all", help="All that this can be done to, as far as the options below choose, not by id.")
    ] = False
    state: Annotated[str | None, typer.Option("--state", metavar="STATE", help="With --all: those in this state.")] = (
        None
    )
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="With --all: those of this agent, tool or toolkit, or `agent: tool`."
        ),
    ] = None
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", help="With --all: those of this queue.")] = (
        None
    )
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="NAME", help="With --all: those of this partition.")
    ] = None
    attribute: AttributeOption = None
    before: Annotated[
        str | None,
        typer.Option(
            "--before", metavar="TIME", help="With --all: those enqueued before: 2h, 7d, or 2030-01-31T12:00."
        ),
    ] = None

    def require_one_way(self, verb: str) -> None:
        """Refuse ids together with a choice among all, a choice without `--all`, and a state that never fits."""
        if bool(self.ids) == self.everything:
            raise typer.BadParameter("name workflows, or give --all", param_hint="ID")
        for name in ("state", "name", "queue", "partition", "attribute", "before"):
            if getattr(self, name) not in (None, [], ()) and not self.everything:
                raise typer.BadParameter("it chooses among --all", param_hint=f"--{name}")
        if self.state not in (None, *_STATES[verb]):
            problem = f"{self.state!r} is not one of {', '.join(_STATES[verb])}, which `{verb}` is for"
            raise typer.BadParameter(problem, param_hint="--state")

    def found(self, verb: str, module: Any, client: Any, **more: Any) -> dict[str, str]:
        """Return the ids of all work that is chosen, with its states; `more` goes to `list_work`."""
        states = _STATES[verb] if self.state is None else (self.state,)
        works = [
            work
            for state in states
            for work in module.list_work(
                client,
                state=state,
                name=self.name,
                queue=self.queue,
                partition=self.partition,
                limit=sys.maxsize,
                **more,
            )
        ]
        return {work.id: work.state for work in works}


def _add_change(verb: str, about: str) -> None:
    """Add the command that cancels, resumes or retries work, by ids or all that is chosen."""

    @workflows.command(verb, help=about)
    def change(
        *,
        chosen: _Chosen,
        yes: Annotated[
            bool, typer.Option("--yes", "-y", help="With --all: do it without saying how many and asking.")
        ] = False,
        database: DatabaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        _change(verb, chosen, database, yes=yes, as_json=as_json)


_add_change("cancel", "Keep workflows from starting or going on; what they did stays done.")
_add_change("resume", "Resume cancelled or given up workflows; what they have recorded is not done again.")
_add_change(
    "retry", "Retry failed work in its queue; a call that may have been done is not made again unless a person says so."
)


@workers.command("list")
def list_workers(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List the workers: running, stopped, or lost with unfinished work."""
    with work_client(database) as (module, client):
        found = module.workers(client)
    if as_json:
        print_json([worker.to_dict() for worker in found])
    elif found:
        rows = [(w.id, w.state, w.pending, ", ".join(w.queues), w.host, w.pid, when(w.seen_at)) for w in found]
        console().print(work_table(("id", "state", "holds", "queues", "host", "pid", "seen"), rows))
    else:
        say(f"no worker has worked on {shown_name(database)}")


@workers.command()
def recover(
    worker_id: Annotated[
        str | None, typer.Argument(metavar="[WORKER]", help="The worker's id.", show_default=False)
    ] = None,
    lost: Annotated[bool, typer.Option("--lost", help="All workers that are lost, in place of one.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if it was seen just now.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand over the work of a worker that will not come back; it can record nothing any more."""
    if (worker_id is None) != lost:
        raise typer.BadParameter("name one worker, or give --lost for all that are lost", param_hint="WORKER")
    if lost and force:
        raise typer.BadParameter(
            "it is for a worker that was seen just now, and none of the lost was", param_hint="--force"
        )
    with work_client(database) as (module, client):
        ids = (
            [worker.id for worker in module.workers(client) if worker.state == "lost"]
            if worker_id is None
            else [worker_id]
        )
        moved = {worker: module.recover(client, worker, force=force) for worker in ids}
    if as_json:
        found = [{"worker": worker, "workflows": ids} for worker, ids in moved.items()]
        print_json(found if lost else found[0])
        return
    for worker, freed in moved.items():
        wait = "waits" if len(freed) == 1 else "wait"
        say(f"{count_text(len(freed), 'workflow')} of {worker} {wait} for other workers now")
    if not moved:
        say(f"no worker on {shown_name(database)} is lost")


def _change(verb: str, chosen: _Chosen, database: str | None, *, yes: bool, as_json: bool) -> None:
    """Cancel, resume or retry each piece of work that is chosen, and print its state; status 1 if one fails."""
    chosen.require_one_way(verb)
    more = {"attributes": attributes_of(chosen.attribute), "until": time_of(chosen.before, "--before")}
    with work_client(database) as (module, client):
        ids: Sequence[str] = tuple(dict.fromkeys(chosen.ids or ()))
        if chosen.everything:
            found = chosen.found(verb, module, client, **more)
            counts = ", ".join(f"{number} {state}" for state, number in Counter(found.values()).items())
            say(f"{verb} in {shown_name(database)}: {counts or 'no work fits'}")
            if found and not yes:
                run_sync(confirm("do it?", undone="nothing was done", meant="that is meant"))
            ids = tuple(found)
        verbs = {"cancel": module.cancel_work, "resume": module.resume_work, "retry": module.retry_work}
        change = verbs[verb]
        if len(ids) == 1 and not chosen.everything:
            changed = [change(client, ids[0])]
        else:
            changed = [work for work_id in ids if (work := _tried(change, client, work_id)) is not None]
    if as_json:
        shown = [work.to_dict() for work in changed]
        print_json(shown[0] if len(ids) == 1 and not chosen.everything else shown)
    else:
        for work in changed:
            say(f"{work.id} is {work.state}")
    if len(changed) < len(ids):
        raise typer.Exit(Status.FAILED)


def _tried(change: Callable[[Any, str], Any], client: Any, work_id: str) -> Any:
    """Return changed work; None where it cannot be changed, after a line about it."""
    try:
        return change(client, work_id)
    except EngineError as error:
        say(str(error))
        return None


def _place(work: Any) -> str | None:
    return f"{work.queue} ({work.partition})" if work.partition else work.queue


def _why(work: Any) -> str | None:
    asked = ", ".join(work.waits_for)
    return work.error or (f"in doubt: {asked}" if work.in_doubt else asked)


def work_table(titles: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    """Return a table of rows, in which a state has its colour."""
    table = table_of(*titles)
    for row in rows:
        cells = ["" if value is None else cell_text(str(value), _WIDE) for value in row]
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    return table


schedules = Commands(name="schedules", help="Schedules that enqueue durable work.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False)]


@schedules.command("list")
def list_schedules(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List the schedules, with the times of their last and next ticks."""
    with work_client(database) as (module, client):
        found = module.schedules(client)
    if as_json:
        print_json([schedule.to_dict() for schedule in found])
    elif found:
        rows = [
            (s.name, s.cron, s.timezone, s.kind, s.target, s.queue, s.state, when(s.last_at), when(s.next_at))
            for s in found
        ]
        console().print(work_table(("name", "cron", "zone", "kind", "of", "queue", "state", "last", "next"), rows))
    else:
        say(f"there is no schedule in {shown_name(database)}")


def _add_schedule_change(verb: str, about: str, done: str) -> None:
    """Add the command that pauses, resumes or deletes a schedule."""

    @schedules.command(verb, help=about)
    def change(name: NameArgument, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
        with work_client(database) as (module, client):
            changes = {
                "pause": module.pause_schedule,
                "resume": module.resume_schedule,
                "delete": module.delete_schedule,
            }
            changed = changes[verb](client, name)
        if as_json:
            print_json(changed.to_dict())
        else:
            say(f"the schedule {name} {done}")


_add_schedule_change("pause", "Let a schedule enqueue nothing until it is resumed.", "is paused")
_add_schedule_change("resume", "Resume a paused schedule, from its next tick on.", "is active")
_add_schedule_change("delete", "Delete a schedule; what it enqueued goes on.", "is deleted")


@schedules.command()
def trigger(name: NameArgument, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Enqueue the work of a schedule now, also of a paused one, and print its id."""
    with work_client(database) as (module, client):
        work_id = module.trigger_schedule(client, name)
    if as_json:
        print_json({"id": work_id})
    else:
        write(f"{work_id}\n")


@schedules.command()
def backfill(
    name: NameArgument,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="The first tick, or before: 2h, 7d, or 2030-01-31T12:00.")
    ],
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="After the last tick, or its day; now when left out."),
    ] = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue the work of each tick of a time that has passed; one whose work was enqueued before is left out."""
    begin, end = time_of(since, "--since") or now(), time_of(until, "--until", to_end=True) or now()
    with work_client(database) as (module, client):
        ids = module.backfill_schedule(client, name, begin, end)
    if as_json:
        print_json({"ids": ids})
    else:
        say(f"the schedule {name} has {count_text(len(ids), 'tick')} in that time")
        write("".join(f"{work_id}\n" for work_id in ids))
