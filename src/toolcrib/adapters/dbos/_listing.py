"""List of durable work: filtered by the database as far as it can, and read in pages that leave nothing out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from toolcrib._numbers import require_number
from toolcrib.adapters.dbos._client import Client, JsonSerializer
from toolcrib.adapters.dbos._placement import require_attributes
from toolcrib.adapters.dbos._schedules import TICK
from toolcrib.adapters.dbos._work import CONTINUED, DBOS_STATES, Work, works_of
from toolcrib.errors import explain_options

_SUSPENDED = (("SUCCESS", '%"waits_for":%'), ("SUCCESS", '{"state":"paused"%'))
_ENDED: Mapping[str, Sequence[tuple[str, str]]] = {
    "waiting": (("ENQUEUED", ""), ("DELAYED", "")),  # for a worker that can run it
    "suspended": _SUSPENDED,
    "rejected": (("SUCCESS", '%"kind":"rejected"%'),),
    "failed": (
        ("ERROR", ""),
        ("SUCCESS", '%"stop_reason":"error"%'),
        ("SUCCESS", '%"stop_reason":"timeout"%'),
        ("SUCCESS", '{"state":"done","success":false%'),
    ),
    "cancelled": (("CANCELLED", ""), ("SUCCESS", '{"state":"paused"%')),
}
"""Places of work of a state for which DBOS has another word: its state there, and a pattern of its output."""

_PAGE = 200  # workflows read at a time, where those of a state have to be looked for among others
_MOST_SEARCHED = 20_000  # workflows that are looked through for words


@explain_options()
def list_work(
    client: Client,
    *,
    state: str | Collection[str] | None = None,
    queue: str | None = None,
    partition: str | None = None,
    name: str | None = None,
    principal: str | None = None,
    attributes: Mapping[str, str] | None = None,
    text: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    start: int = 0,
) -> list[Work]:
    """Return work, the latest first; what has gone on after a pause is as late as that.

    Args:
        state: Only work in this state, or in any of these.
        queue: Only work of this queue.
        partition: Only work of this partition.
        name: Only work of the agent, tool or toolkit of this name, or of `agent: tool`.
        principal: Only work on behalf of this principal, where that is known: programs, and suspended turns.
        attributes: Only work that was put with all of these attributes.
        text: Only work with each of these words in its id, agent, tool, toolkit, principal, conversation, key,
            schedule, partition or attributes (`customer=acme`), of the latest 20,000 that fit the rest; upper case is
            lower case.
        since: Only work that was enqueued then or later, with a time zone.
        until: Only work that was enqueued before then.
        start: How many are left out before the first.
    """
    require_number("list_work", "limit", limit, least=1)
    require_number("list_work", "start", start, least=0)
    require_attributes("list_work", attributes)
    words = (text or "").lower().split()
    states = (state,) if isinstance(state, str) else tuple(state or ())
    wanted = _Wanted(states, queue, partition, name, principal, attributes or {}, since, until)
    latest = _latest(client, wanted, _PAGE if states or start or words or name or principal else limit)
    if words:
        latest = (work for work in islice(latest, _MOST_SEARCHED) if work.has_words(words))
    found = (work for work in latest if wanted.has(work))
    return list(islice(found, start, start + limit))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Filter of the work that is listed; None or no state for any."""

    states: tuple[str, ...]
    queue: str | None
    partition: str | None
    name: str | None
    principal: str | None
    attributes: Mapping[str, str]
    since: datetime | None
    until: datetime | None

    def has(self, work: Work) -> bool:
        """Return whether work fits what the database can check in part only."""
        return (
            work.state != CONTINUED
            and (not self.states or work.state in self.states)
            and (self.name is None or work.is_named(self.name))
            and (self.principal is None or work.principal == self.principal)
        )

    def conditions(self, tables: Any, *, in_file: bool) -> Iterator[Any]:
        """Yield the conditions that the database checks, on the tables of DBOS."""
        status, output = tables.workflow_status.c, tables.workflow_output.c
        data = sa.func.coalesce(tables.workflow_input.c.inputs, status.inputs)
        if self.states:
            yield sa.or_(
                *(
                    sa.and_(status.status == theirs, output.output.like(pattern) if pattern else sa.true())
                    for state in self.states
                    for theirs, pattern in _ENDED.get(state)
                    or [(theirs, "") for theirs, ours in DBOS_STATES.items() if ours == state]
                )
            )
        if self.queue is not None:
            yield status.queue_name == self.queue
        if self.partition is not None:
            yield status.queue_partition_key == self.partition
        for part in () if self.name is None else self.name.split(": ", 1):
            yield data.contains(_in_json(part), autoescape=True)
        if self.principal is not None:
            asked = _in_json(self.principal)
            yield sa.or_(*(column.contains(asked, autoescape=True) for column in (data, output.output)))
        if self.attributes and not in_file:
            yield sa.type_coerce(status.attributes, JSONB).contains(dict(self.attributes))  # an index of DBOS has them
        for name, text in self.attributes.items() if in_file else ():
            yield sa.func.json_extract(status.attributes, f'$."{name}"') == text
        if self.since is not None:
            yield status.created_at >= self.since.timestamp() * 1000
        if self.until is not None:
            yield status.created_at < self.until.timestamp() * 1000


def _in_json(text: str) -> str:
    """Return a text as it stands in what DBOS keeps."""
    return JsonSerializer().serialize(text)


def _latest(client: Client, wanted: _Wanted, page: int) -> Iterator[Work]:
    before: tuple[int, str] | None = None
    while True:
        keys = _keys(client, wanted, page, before)
        ids = [work_id for _, work_id in keys]
        found = client.dbos.list_workflows(workflow_ids=ids) if ids else []
        by_id = {
            status.workflow_id: status for status in found if (status.name, status.status) != (TICK, "SUCCESS")
        }  # since `_keys`
        yield from works_of(client, [by_id[work_id] for work_id in ids if work_id in by_id])
        if len(keys) < page:
            return
        before = keys[-1]


def _keys(client: Client, wanted: _Wanted, limit: int, before: tuple[int, str] | None) -> list[tuple[int, str]]:
    """Return when what may be wanted was enqueued, and its id, the latest first.

    The database looks through outputs by itself.

    Args:
        before: The last of the page before. What changes between two pages shifts nothing in the second one.
    """
    database: Any = client.dbos._sys_db  # pyright: ignore[reportPrivateUsage] -- the client finds nothing by output
    tables, in_file = database.tables, client.database.path is not None
    status, work_id = tables.workflow_status.c, tables.workflow_status.c.workflow_uuid
    key = (status.created_at, work_id)
    query = (
        sa.select(*key)
        .outerjoin(tables.workflow_output, work_id == tables.workflow_output.c.workflow_uuid)
        .outerjoin(tables.workflow_input, work_id == tables.workflow_input.c.workflow_uuid)
        .where(status.application_name == client.database.application)
        .where(sa.or_(status.name != TICK, status.status != "SUCCESS"))  # what it enqueued is there
        .where(*wanted.conditions(tables, in_file=in_file))
        .order_by(*(column.desc() for column in key))  # the parts of a program have its id and a number
    )
    if before is not None:
        query = query.where(sa.tuple_(*key) < sa.tuple_(*map(sa.literal, before)))
    with database.engine.begin() as connection:
        return [(created_at, work_id) for created_at, work_id in connection.execute(query.limit(limit))]
