"""Schedules: work that is enqueued again and again by a cron expression, once for each tick, by DBOS's scheduler."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

import sqlalchemy as sa
from croniter import croniter
from dbos import DBOS
from dbos import error as dbos_error

from toolcrib.adapters.dbos._client import Client
from toolcrib.adapters.dbos._engine import Engine, current_engine, standing_routines
from toolcrib.adapters.dbos._placement import SCHEDULE, Placement, target_of, turn_id_of, with_id
from toolcrib.adapters.dbos._work_tables import schedule_marks as marks
from toolcrib.adapters.dbos._workflow import workflow
from toolcrib.calls import StoredFields, versioned
from toolcrib.errors import EngineError, explain_options

TICK = "toolcrib.tick"
"""The name of the workflow in DBOS that enqueues the work of a tick."""

_PREFIX = "sched-"  # of the ids that DBOS gives the workflows of ticks
_MOST_TICKS = 10_000  # that are made up for at once
_BEGUN_SECONDS = 3.0  # in which DBOS makes up for ticks itself, and begins to wait for those to come
_MISSED_SECONDS = 60.0  # between two looks for ticks that no worker enqueued
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_RANDOM = re.compile(r"(^|[\s,])r(\W|$)", re.IGNORECASE)


@explain_options()
@dataclass(frozen=True, slots=True)
class Schedule:
    """The times at which a piece of work is enqueued, again and again.

    Attributes:
        name: Names it in the database, where a schedule of this name is replaced.
        cron: Minute, hour, day of the month, month and day of the week; a sixth field before them is the second.
        timezone: The IANA name of the time zone of these, as Europe/Berlin.
        backfill: Enqueue the ticks that passed while no worker ran as soon as one runs again; they are skipped without
            it. Ticks of a time in which the schedule was paused are always skipped.
    """

    name: str
    cron: str
    timezone: str = "UTC"
    backfill: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError(f"a schedule needs a name, and this is {self.name!r}")
        who = f"the schedule `{self.name}`"
        try:
            zone = _zone(self.timezone)
        except (LookupError, OSError, ValueError):  # ZoneInfo's
            raise ValueError(
                f"{who}: timezone must be the IANA name of a time zone, as Europe/Berlin, and is {self.timezone!r:.80}"
            ) from None
        if why := _problem(self.cron, zone):
            raise ValueError(f"{who}: cron must be an expression such as '0 2 * * *', and is {self.cron!r:.80}: {why}")


@dataclass(frozen=True, slots=True)
class ScheduledWork:
    """A schedule in the database, with the work that it enqueues.

    Attributes:
        kind: `turn` or `program`.
        target: The agent and the tool of a turn, the toolkit of a program.
        state: `active` or `paused`.
        last_at: When work was last enqueued by it, in seconds since the epoch; None before the first tick.
        next_at: When its next tick is; None where it is paused, or has no further one.
    """

    name: str
    cron: str
    timezone: str
    backfill: bool
    kind: str
    target: str
    queue: str
    state: Literal["active", "paused"]
    last_at: float | None
    next_at: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return {name: getattr(self, name) for name in ScheduledWork.__slots__}


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def _problem(cron: str, zone: tzinfo) -> str | None:
    """Return the error of a cron expression; None for a valid one."""
    if _RANDOM.search(cron):
        return "each worker would choose another random time"
    try:
        _next_tick(cron, _LONG_AGO.astimezone(zone))
    except (ValueError, LookupError, AttributeError) as error:  # croniter's
        return str(error)
    return None


def _next_tick(cron: str, after: datetime) -> datetime:
    """Return the next tick after a time; raises ValueError where there is none."""
    return croniter(cron, after, second_at_beginning=True).get_next(datetime)


def apply_schedule(
    client: Client,
    schedule: Schedule,
    workflow: str,
    queue: str,
    data: Mapping[str, Any],
    placement: Placement,
    time_argument: str | None = None,
) -> None:
    """Write a schedule into the database, in place of one of its name; one that is paused stays paused.

    Args:
        data: The data of each of its workflows, which has an id of its own.
        placement: Where and how it waits; its id is not used.
        time_argument: The argument of a turn that is the time of its tick.

    Raises:
        EngineError: Another application of the database has the name.
    """
    work = {SCHEDULE: schedule.name, "workflow": workflow, "to": queue, "data": dict(data)}
    work["placement"] = placement.options
    if placement.debounce is not None:
        raise ValueError(f"the schedule `{schedule.name}`: what is enqueued by the clock cannot be debounced")
    entry = {
        "schedule_name": schedule.name,
        "workflow_name": TICK,
        "schedule": schedule.cron,
        "cron_timezone": None if schedule.timezone == "UTC" else schedule.timezone,
        "automatic_backfill": schedule.backfill,
        "context": versioned("ScheduledWork", {**work, "time_argument": time_argument}),
        "application_name": client.database.application,
    }
    before = client.dbos.get_schedule(schedule.name)
    if before is not None and _times(before) != _times(entry) and _is_here(before, client):
        _skip_until(client, schedule.name, datetime.now(UTC))  # first: it has made nothing of its own due before
    try:
        client.dbos.apply_schedules([cast("Any", entry)])
    except dbos_error.DBOSException as error:
        raise EngineError(f"the schedule `{schedule.name}` cannot be made: {error}") from None
    if _found(client, schedule.name)["last_fired_at"] is None:
        _skip_until(client, schedule.name, datetime.now(UTC))  # what passes from here on is made up for


def schedules(client: Client) -> list[ScheduledWork]:
    """Return the schedules of the database, by name."""
    found = client.dbos.list_schedules(workflow_name=TICK, application_name=client.database.application)
    return sorted((_scheduled(client, schedule) for schedule in found), key=lambda schedule: schedule.name)


def pause_schedule(client: Client, name: str) -> ScheduledWork:
    """Stop a schedule from enqueuing work until it is resumed, and return it as it is then.

    Raises:
        EngineError: There is no such schedule.
    """
    _found(client, name)
    client.dbos.pause_schedule(name)
    return _scheduled(client, _found(client, name))


def resume_schedule(client: Client, name: str) -> ScheduledWork:
    """Resume a schedule that was paused, from its next tick on, and return it as it is then.

    Raises:
        EngineError: There is no such schedule.
    """
    if _found(client, name)["status"] == _PAUSED:
        _skip_until(client, name, datetime.now(UTC))
        client.dbos.resume_schedule(name)
    return _scheduled(client, _found(client, name))


def delete_schedule(client: Client, name: str) -> ScheduledWork:
    """Delete a schedule, and return it as it was; work that it enqueued goes on.

    Raises:
        EngineError: There is no such schedule.
    """
    before = _scheduled(client, _found(client, name))
    client.dbos.delete_schedule(name)
    with client.engine.begin() as connection:
        connection.execute(sa.delete(marks).where(marks.c.schedule == name))
    return before


def trigger_schedule(client: Client, name: str) -> str:
    """Enqueue the work of a schedule now, also of a paused one, and return its id.

    Raises:
        EngineError: There is no such schedule.
        NewerForm: A newer version made it.
    """
    found = _found(client, name)
    at = datetime.now(_zone(found["cron_timezone"] or "UTC")).isoformat()
    return _enqueue(client, found["context"], f"{name}-trigger-{at}", at)


@explain_options()
def backfill_schedule(client: Client, name: str, since: datetime, until: datetime) -> list[str]:
    """Enqueue the work of each tick between two times, and return its ids; a tick that was enqueued is not again.

    Args:
        since: The time of the first tick, or before it, with a time zone.
        until: A time after the last tick; ticks to come are left to the schedule.

    Raises:
        EngineError: There is no such schedule, it is paused, it has more than 10,000 ticks, or no worker has run yet.
        ValueError: A time has no time zone, or there is no time between them.
    """
    if since.tzinfo is None or until.tzinfo is None:
        raise ValueError("since and until need a time zone: datetime(2026, 11, 1, tzinfo=UTC)")
    until = min(until, datetime.now(UTC))
    if since >= until:
        raise ValueError(f"no time is between {since.isoformat()} and {until.isoformat()}, or now")
    found = _found(client, name)
    if found["status"] == _PAUSED:
        raise EngineError(f"the schedule `{name}` is paused, and would skip these ticks: resume it first")
    start = since.astimezone(_zone(found["cron_timezone"] or "UTC")) - timedelta(microseconds=1)  # a tick then counts
    ticks = croniter(found["schedule"], start, second_at_beginning=True).all_next(datetime)
    if any(tick < until for tick in islice(ticks, _MOST_TICKS, _MOST_TICKS + 1)):
        raise EngineError(f"the schedule `{name}` has more than {_MOST_TICKS} ticks in that time: take a shorter one")
    try:
        handles = client.dbos.backfill_schedule(name, start, until)
    except dbos_error.DBOSException as error:
        raise EngineError(f"no tick of `{name}` was enqueued: {error}. Start a worker of this database first") from None
    return [_work_id(found["context"]["data"], handle.workflow_id.removeprefix(_PREFIX)) for handle in handles]


_PAUSED = "PAUSED"


def _times(found: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the cron expression and the time zone of a schedule."""
    return found["schedule"], found["cron_timezone"]


def _is_here(found: Mapping[str, Any], client: Client) -> bool:
    return (found["workflow_name"], found["application_name"]) == (TICK, client.database.application)


def _found(client: Client, name: str) -> Any:
    found = client.dbos.get_schedule(name)
    if found is None or not _is_here(found, client):
        known = ", ".join(schedule.name for schedule in schedules(client)) or "none"
        raise EngineError(f"there is no schedule `{name}` in {client.database}; there are: {known}")
    return found


def _scheduled(client: Client, found: Any) -> ScheduledWork:
    work: Mapping[str, Any] = found["context"]
    timezone = found["cron_timezone"] or "UTC"
    is_paused = found["status"] == _PAUSED
    last = client.dbos.list_workflows(
        schedule_name=found["schedule_name"], limit=1, sort_desc=True, load_input=False, load_output=False
    )
    try:
        coming = None if is_paused else _next_tick(found["schedule"], datetime.now(_zone(timezone))).timestamp()
    except (LookupError, ValueError):  # it has no further one, or this host does not know the zone
        coming = None
    return ScheduledWork(
        found["schedule_name"],
        found["schedule"],
        timezone,
        bool(found["automatic_backfill"]),
        str(work["workflow"]).removeprefix("toolcrib."),
        target_of(work["data"]),
        str(work["to"]),
        "paused" if is_paused else "active",
        (last[0].created_at or 0) / 1000 if last else None,
        coming,
    )


def _skip_until(client: Client, name: str, at: datetime) -> None:
    """Record that the ticks until a time are dealt with, so that no worker makes up for them."""
    client.dbos._sys_db.update_last_fired_at(name, at.isoformat())  # pyright: ignore[reportPrivateUsage] -- DBOS has no public way to it
    with client.engine.begin() as connection:
        _set_mark(connection, name, at.timestamp())


# --- on a worker


async def _keep_making_up(engine: Engine) -> None:
    """Enqueue the ticks that no worker enqueued, of schedules that make up for them, while this worker runs."""
    await engine.clock.sleep(_BEGUN_SECONDS)
    while True:
        await asyncio.to_thread(_make_up, engine.client)
        await engine.clock.sleep(_MISSED_SECONDS)


def _make_up(client: Client) -> None:
    """Enqueue each tick between the mark of a schedule and now that is not there, and move the mark.

    DBOS makes up for the ticks since the latest that it enqueued, once, when a worker begins. The mark moves only over
    ticks that are there: a worker that died between two ticks, or began slowly, leaves none out for good.
    """
    for before in client.dbos.list_schedules(
        status="ACTIVE", workflow_name=TICK, application_name=client.database.application
    ):
        if before["automatic_backfill"]:
            name, now = before["schedule_name"], datetime.now(UTC)
            mark = _mark(client, name, before["last_fired_at"])
            current = client.dbos.get_schedule(name)  # after the mark, which moves before a schedule gets other times
            is_same = current is not None and current["status"] == "ACTIVE" and _times(current) == _times(before)
            if mark is not None and is_same:
                client.dbos.backfill_schedule(name, datetime.fromtimestamp(mark, UTC), now)
                _move_mark(client, name, mark, now)


def _mark(client: Client, name: str, fired_at: str | None) -> float | None:
    """Return the time until which the ticks of a schedule are there; that of DBOS where an older version made it."""
    with client.engine.begin() as connection:
        mark = connection.execute(sa.select(marks.c.until).where(marks.c.schedule == name)).scalar()
        if mark is None and fired_at is not None:
            mark = datetime.fromisoformat(fired_at).timestamp()
            _set_mark(connection, name, mark)
        return mark


def _set_mark(connection: sa.Connection, name: str, until: float) -> None:
    statement = (
        "INSERT INTO toolcrib_schedule_marks (schedule, until) VALUES (:schedule, :until) "
        "ON CONFLICT (schedule) DO UPDATE SET until = excluded.until"
    )
    connection.execute(sa.text(statement), {"schedule": name, "until": until})


def _move_mark(client: Client, name: str, mark: float, to: datetime) -> None:
    """Move a mark on, unless it was moved meanwhile, and that of DBOS, which backfills from it."""
    unmoved = (marks.c.schedule == name) & (marks.c.until == mark)
    with client.engine.begin() as connection:
        moved = connection.execute(sa.update(marks).where(unmoved).values(until=to.timestamp())).rowcount
    if moved:
        client.dbos._sys_db.update_last_fired_at(name, to.isoformat())  # pyright: ignore[reportPrivateUsage] -- as above


standing_routines.append(_keep_making_up)


@workflow(TICK)
async def _tick(at: str, data: dict[str, Any]) -> dict[str, Any]:
    """Enqueue the work of a tick, unless its schedule was paused or deleted since."""
    client, name = current_engine().client, data[SCHEDULE]
    found = await asyncio.to_thread(client.dbos.get_schedule, name)
    if found is None or found["status"] == _PAUSED:
        return {"skipped": "deleted" if found is None else "paused"}
    tick = str(DBOS.workflow_id).removeprefix(_PREFIX)
    return {"work": await asyncio.to_thread(_enqueue, client, data, tick, at)}


def _enqueue(client: Client, stored: Mapping[str, Any], tick: str, at: str) -> str:
    """Enqueue the work of a tick, and return its id: the same for each try of one tick."""
    work = StoredFields("ScheduledWork", stored)
    data: dict[str, Any] = {**work["data"], SCHEDULE: work[SCHEDULE]}
    if work["time_argument"] is not None:
        data["turn"] = {**data["turn"], "kwargs": {**data["turn"]["kwargs"], work["time_argument"]: at}}
    work_id = _work_id(data, tick)
    return client.enqueue_now(
        work["workflow"], work["to"], with_id(data, work_id), Placement(work_id, **work["placement"])
    )


def _work_id(data: Mapping[str, Any], tick: str) -> str:
    return tick if "run" in data else turn_id_of(tick)
