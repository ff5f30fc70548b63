"""Places of durable work: queues, where a piece of work waits in one, and what its data keeps of that."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from dbos import WorkflowStatus

from toolcrib._numbers import require_number, require_numbers, require_seconds
from toolcrib.durable import RetryPolicy
from toolcrib.errors import EngineError, explain_options

KEY, PARTITION, TIMEOUT = "key", "partition", "timeout"
"""The keys in the data of work of parts of its placement, for work that continues it."""

DEBOUNCED = "debounced"
"""The key in the data of work of the key under which it waited for others; that one is free once it is due."""

SCHEDULE = "schedule"
"""The key in the data of work of the schedule that it comes from."""

ATTRIBUTES = "attributes"
"""The key in the data of work of its attributes, which the turns that it puts have, too."""

NOTES = frozenset({"left", "left_at", "tries"})
"""The names of the notes of workers beside the attributes of work: why it waits, since when, and its tries."""

_NAME = re.compile(r"[\w.:/-]+")


def _require_rate(who: str, name: str, rate: object) -> None:
    """Check that a rate is a number and its seconds, or None."""
    if rate is None:
        return
    pair = cast("Sequence[object]", rate) if isinstance(rate, tuple | list) else ()
    if len(pair) != 2 or None in pair:
        raise TypeError(f"{who}: {name} is so many in so many seconds, as in {name}=(100, 60.0), and not {rate!r:.80}")
    require_number(who, f"the number of {name}", pair[0], least=1)
    require_seconds(who, f"the time of {name}", pair[1])


@explain_options()
@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of durable work, as DBOS keeps it in the database.

    Attributes:
        concurrency: The most that runs at a time, on all workers together; with 1 strictly in order.
        worker_concurrency: The most that runs at a time on one worker.
        rate: So many may start in so many seconds, on all workers together: `(100, 60.0)`.
        partition_concurrency: The most that runs at a time of one partition, on all workers together. With this or the
            next, all work of the queue has to name its partition.
        retry: How often a turn of an idempotent tool is tried that failed; once when None. A turn of another tool may
            have had its effect, and is not tried again unless a person says so.
        partition_rate: So many of one partition may start in so many seconds.
        polling: Seconds between two looks of a worker that has room.
        tries: How often a program is begun whose sandbox does not start, or whose process is killed from outside,
            before it fails; between two tries it waits in the queue, longer each time.
    """

    name: str
    concurrency: int | None = None
    worker_concurrency: int | None = 100
    rate: tuple[int, float] | None = None
    polling: float = 0.25
    tries: int = 5
    partition_concurrency: int | None = None
    partition_rate: tuple[int, float] | None = None
    retry: RetryPolicy | None = None

    def __post_init__(self) -> None:
        if not self.name or self.name.startswith("_dbos_"):
            raise ValueError(f"a queue needs a name that does not begin with `_dbos_`, and this is {self.name!r}")
        sizes, who = ("concurrency", "worker_concurrency", "tries", "partition_concurrency"), f"the queue `{self.name}`"
        require_numbers(who, self, dict.fromkeys(sizes, 1), seconds=("polling",))
        _require_rate(who, "rate", self.rate)
        _require_rate(who, "partition_rate", self.partition_rate)
        if not isinstance(self.retry, RetryPolicy | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"{who}: retry must be a policy, as in retry=RetryPolicy(3), and not {self.retry!r:.80}")
        if (self.partition_concurrency or 0) > (self.concurrency or sys.maxsize):
            of_partition, of_all = self.partition_concurrency, self.concurrency
            raise ValueError(
                f"{who}: partition_concurrency must be at most concurrency, {of_all}, and is {of_partition}"
            )

    @property
    def is_partitioned(self) -> bool:
        """True if each partition of the work has limits of its own."""
        return self.partition_concurrency is not None or self.partition_rate is not None

    def check(self, partition: str | None) -> None:
        """Return if work of this partition can wait in this queue; raises EngineError for none where it is needed."""
        if self.is_partitioned and partition is None:
            raise EngineError(
                f"the queue `{self.name}` has limits for each partition: name the partition of this work, as in "
                "partition='tenant-7'"
            )

    @property
    def per_worker(self) -> int | None:
        """The most on one worker: never more than on all of them."""
        both = [n for n in (self.concurrency, self.worker_concurrency) if n is not None]
        return min(both, default=None)


@explain_options()
@dataclass(frozen=True, slots=True)
class Placement:
    """The place, time and limits of a piece of work in its queue.

    Attributes:
        id: Names it; work of an id that exists is not enqueued again.
        priority: 1 before 2; 0 is before all of them, and the default.
        key: Of those with one key, one waits or runs at a time: a second is not enqueued. Work that is paused for an
            answer lets others of its key run; what goes on with it waits until the key is free.
        delay: Seconds before it may start.
        partition: Whose work it is, in a queue with limits for each partition: a tenant, for instance. The
            work that it puts is of the same partition.
        debounce: Seconds in which it waits for another of its key, which takes its place and waits as long again: of
            several, the last is done, once. A key is free as soon as its work is due.
        debounce_limit: Seconds after the first of them, after which the last is done all the same.
        timeout: Seconds in which it has to end once a worker has begun it; then it fails. It has them anew each time
            that it is begun: when it goes on after an answer, on another worker, or by a retry.
        attributes: Texts by name, by which it is found: `{"customer": "acme"}`. The turns that it puts have them, too.
    """

    id: str
    priority: int = 0
    key: str | None = None
    delay: float | None = None
    timeout: float | None = None
    partition: str | None = None
    debounce: float | None = None
    debounce_limit: float | None = None
    attributes: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        require_attributes("put", self.attributes)
        if notes := NOTES.intersection(self.attributes or ()):
            raise ValueError(f"put: `{min(notes)}` cannot be the name of an attribute: workers note something by it")
        if self.partition is not None and not self.partition:
            raise ValueError("put: partition must be a text that is not empty")
        if self.partition is not None and self.key is not None:
            raise ValueError("put: work of a partition cannot have a key; give it an id, by which it is enqueued once")
        seconds = ("timeout", "debounce", "debounce_limit")
        require_numbers("put", self, {"priority": 0}, seconds=seconds, seconds_from_zero=("delay",))
        if self.debounce_limit is not None and self.debounce is None:
            raise ValueError("put: debounce_limit is of no use without debounce")
        if self.debounce is not None and self.key is None:
            raise ValueError("put: debounce needs a key, by which one takes the place of another")
        if self.debounce is not None and (self.delay is not None or self.priority):
            raise ValueError("put: debounced work can have no delay and no priority, since another may take its place")

    @property
    def options(self) -> dict[str, Any]:
        """The options besides the id and what the data of the work has, as JSON shapes."""
        names = [name for name in Placement.__slots__ if name not in ("id", ATTRIBUTES)]
        return {name: value for name in names if (value := getattr(self, name))}


def limits_of(placement: Placement) -> dict[str, Any]:
    """Return the part of its placement that the data of work keeps."""
    names = (KEY, PARTITION, TIMEOUT, ATTRIBUTES)
    return {name: value for name in names if (value := getattr(placement, name)) is not None}


def require_attributes(who: str, attributes: object) -> None:
    """Return if these are texts by name, or None; raises TypeError for another value, ValueError for a name."""
    if attributes is None:
        return
    pairs = cast("Mapping[object, object]", attributes) if isinstance(attributes, Mapping) else {None: None}
    for name, value in pairs.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            shown = "attributes={'customer': 'acme'}"
            raise TypeError(f"{who}: attributes are texts by name, as in {shown}, and not {attributes!r:.80}")
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{who}: the name of an attribute must have letters, digits and `_.:/-` alone, not {name!r:.80}"
            )


def turn_id_of(id: str) -> str:
    """Return the id of a turn with a given name: a UUID is its own id, and another name has always the same one."""
    try:
        return str(UUID(id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"toolcrib:{id}"))


def with_id(data: Mapping[str, Any], work_id: str) -> dict[str, Any]:
    """Return the data of a turn or program with another id."""
    if "run" in data:
        return {**data, "run": work_id}
    return {**data, "turn": {**data["turn"], "uuid": work_id}}


def data_of(status: WorkflowStatus) -> Mapping[str, Any]:
    """Return the input of a workflow, as JSON shapes; empty for one of other code."""
    arguments: tuple[object, ...] = (*(status.input["args"] if status.input else ()), {})
    return next(cast("Mapping[str, Any]", argument) for argument in arguments if isinstance(argument, Mapping))


def target_of(data: Mapping[str, Any]) -> str:
    """Return the target of work from its data: the agent and the tool of a turn, the toolkit of a program."""
    turn = data.get("turn")
    tool = cast("Mapping[str, Any]", turn).get("tool_name", "") if isinstance(turn, Mapping) else ""
    return f"{data.get('agent')}: {tool}" if tool else str(data.get("toolkit") or data.get("agent") or "")
