"""`toolcrib schedules`: schedules that enqueue durable work."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib._numbers import count_text
from toolcrib.calls import now
from toolcrib.cli._commands import Commands
from toolcrib.cli._database import DatabaseOption, shown_name
from toolcrib.cli._formatting import JsonOption, console, print_json, say, write
from toolcrib.cli._times import time_of
from toolcrib.cli._work_page import when
from toolcrib.cli._workflows import work_client, work_table

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
