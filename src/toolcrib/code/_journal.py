"""The journal of a program: its calls and their replies, enough to run it again up to where it paused."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from toolcrib._json_writer import json_writer
from toolcrib.calls import Grant, StoredFields, Suspended, lenient, outcome_from_dict, versioned
from toolcrib.errors import ReplayDiverged
from toolcrib.sandbox import Raised, Reply, Value

_canonical = json_writer(allow_nan=True, canonical=True)
_SHOWN_CHARS = 60  # characters of a digest or of arguments in a message


class JournalLog(Protocol):
    """A log that keeps a journal while its program runs; used by the event loop that runs the program."""

    @property
    def waited(self) -> float:
        """The seconds so far in which the program waited for the log; its `wall_time` does not count them."""
        ...

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line, of JSON shapes; this may not wait for anything."""
        ...

    async def flush(self) -> None:
        """Return when every line so far survives the process; what follows from a line begins only then."""
        ...


def call_digest(args: list[Any], kwargs: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of the arguments as a program gave them."""
    return hashlib.sha256(_canonical([args, kwargs]).encode()).hexdigest()


@dataclass(slots=True)
class JournalEntry:
    """One call of a program.

    Attributes:
        id: The call's id, the same however often the program is resumed.
        name: The name by which the program called the tool.
        digest: Of the arguments.
        summary: The call as `ExecutionResult.tool_calls` has it.
        reply: The reply to the program; None until it comes.
        values: The values that a streaming call yielded.
        cancelled: Whether the program itself cancelled the call.
        suspended: The outcome of a call that waits for a person.
        in_doubt: Whether the call was begun and is not known to have ended.
        begun: How often it may have been executed.
        grant: By what it was begun; None where it needed no approval, or is not kept: one that is standing is found
            again, and one with values that are not JSON would be another.
    """

    id: str
    name: str
    digest: str
    summary: dict[str, Any]
    reply: Reply | None = None
    values: list[Any] = field(default_factory=list[Any])
    cancelled: bool = False
    suspended: Suspended | None = None
    in_doubt: bool = False
    begun: int = 0
    grant: Grant | None = None

    def start(self, grant: Grant | None) -> dict[str, Any]:
        """Record that it may be executed from now on, by a grant if it needed one, and return the line of that."""
        if grant is not None and grant.override_args is None and self.grant is not None:
            grant = replace(grant, override_args=self.grant.override_args)  # it is asked about with these, and has them
        typed = None if grant is None else [grant.override_args, grant.user_input]
        self.begun += 1
        self.grant = None if grant is None or grant.standing or lenient(typed) != typed else grant
        line = {"t": "started", "id": self.id, "name": self.name, "digest": self.digest, "summary": self.summary}
        return versioned("JournalLine", line | ({} if self.grant is None else {"grant": self.grant.to_dict()}))

    @property
    def answer_id(self) -> str:
        """The id of the call that an answer is for: another one where it started before its program had come."""
        return self.id if self.suspended is None else self.suspended.call_id

    @property
    def is_open(self) -> bool:
        """True when the call has no reply and was not cancelled."""
        return self.reply is None and not self.cancelled

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON shapes."""
        summary = dict(self.summary)
        if isinstance(self.reply, Value) and "result" in summary and summary["result"] is self.reply.value:
            del summary["result"]  # it need not be there twice
        data: dict[str, Any] = {"id": self.id, "name": self.name, "digest": self.digest, "summary": summary}
        if self.reply is not None:
            data["reply"] = reply_to_dict(self.reply)
        if self.suspended is not None and self.is_open:
            data["suspended"] = self.suspended.to_dict()
        if self.values:
            data["values"] = self.values
        if self.grant is not None and self.is_open:
            data["grant"] = self.grant.to_dict()
        data |= {name: found for name in ("cancelled", "in_doubt", "begun") if (found := getattr(self, name))}
        return versioned("JournalEntry", data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JournalEntry:
        """Return the entry that `to_dict` described; raises ValueError when a field is missing."""
        data = StoredFields(cls, data)
        entry = cls(data["id"], data["name"], data["digest"], dict(data["summary"]))
        entry.reply = reply_from_dict(data["reply"]) if "reply" in data else None
        if isinstance(entry.reply, Value) and entry.summary.get("outcome") == "completed":
            entry.summary.setdefault("result", entry.reply.value)
        entry.values = list(data.get("values", ()))
        entry.cancelled, entry.in_doubt = data.get("cancelled", False), data.get("in_doubt", False)
        entry.begun = data.get("begun", 1)
        entry.grant = Grant.from_dict(data["grant"]) if "grant" in data else None
        if "suspended" in data:
            outcome = outcome_from_dict(data["suspended"])
            entry.suspended = outcome if isinstance(outcome, Suspended) else None
        return entry

    def copy(self) -> JournalEntry:
        """Return a copy that shares nothing that changes while the program runs."""
        return self.from_dict(self.to_dict())


def reply_to_dict(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON shapes."""
    if isinstance(reply, Value):
        tables = [b64encode(table).decode() for table in reply.tables]
        return {"value": reply.value} | ({"tables": tables} if tables else {})
    return {"raised": [reply.type, reply.message]} if isinstance(reply, Raised) else {}


def reply_from_dict(data: Mapping[str, Any]) -> Reply:
    """Return the reply that `reply_to_dict` described."""
    if "raised" in data:
        return Raised(*data["raised"])
    return Value(StoredFields(Value, data)["value"], tuple(map(b64decode, data.get("tables", ()))))


class Journal:
    """The calls of one program, and which calls of an earlier run it has yet to ask for again.

    Args:
        earlier: The calls of the earlier run.
        replays: Whether the program runs again from its start, and asks for each earlier call; else for the open ones.
        open_last: Whether the open calls are asked for after all the others; else in order. It matters where two calls
            are the same, and only one of them was made.
        repeated: The ids of calls that the program asks for again, even if it does not run again from its start.

    Attributes:
        entries: All calls, in the order they were first made.
        replays: As given.
    """

    def __init__(
        self,
        earlier: Iterable[JournalEntry] = (),
        *,
        replays: bool = True,
        open_last: bool = False,
        repeated: frozenset[str] = frozenset(),
    ) -> None:
        self.replays = replays
        self.entries: list[JournalEntry] = list(earlier)
        self._expected: defaultdict[tuple[str, str], deque[JournalEntry]] = defaultdict(deque)
        self._order: dict[str, JournalEntry] = {}
        asked = [entry for entry in self.entries if replays or entry.is_open or entry.id in repeated]
        for entry in asked:
            self._order[entry.id] = entry
        for entry in sorted(asked, key=lambda entry: open_last and entry.is_open):
            self._expected[entry.name, entry.digest].append(entry)

    @property
    def expected(self) -> JournalEntry | None:
        """The first call of the earlier run that was not asked for again; None when each was."""
        return next(iter(self._order.values()), None)

    def match(self, name: str, digest: str) -> JournalEntry | None:
        """Return the call of the earlier run that this one repeats; None for a new one.

        Calls are matched by name, arguments and how often both occurred, not by their order.

        Raises:
            ReplayDiverged: The call is new, and the program has not yet asked for all calls of the earlier run.
        """
        if not self._order:
            return None
        matching = self._expected.get((name, digest))
        if not matching:
            first = next(iter(self._order.values()))
            raise ReplayDiverged(
                _described(first), f"`{name}` with {'other' if first.name == name else 'its'} arguments"
            )
        entry = matching.popleft()
        del self._order[entry.id]
        return entry

    def diverged(self, step: str) -> ReplayDiverged | None:
        """Return the error for a program that came to `step` with calls left to ask for; None when no call is left."""
        return None if self.expected is None else ReplayDiverged(_described(self.expected), step)

    @property
    def open(self) -> list[JournalEntry]:
        """The calls without a reply that were not cancelled, in order."""
        return [entry for entry in self.entries if entry.is_open]


def _described(entry: JournalEntry) -> str:
    arguments = entry.summary.get("arguments")
    if not isinstance(arguments, dict):
        return f"a call of `{entry.name}`"
    shown = json.dumps(arguments, ensure_ascii=False)
    return f"a call of `{entry.name}` with {shown if len(shown) <= _SHOWN_CHARS else shown[:_SHOWN_CHARS] + '...'}"
