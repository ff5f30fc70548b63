"""Calls of a program, as its journal describes them: which were made, with which replies, and which one comes again."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolcrib._json_writer import json_writer
from toolcrib.calls import Grant, Suspended, lenient
from toolcrib.code._journal import JournalEntry
from toolcrib.errors import ReplayDiverged
from toolcrib.sandbox import Reply, Value

_canonical = json_writer(allow_nan=True, canonical=True)
_SHOWN_CHARS = 60  # characters of a digest or of arguments in a message


def call_digest(args: list[Any], kwargs: dict[str, Any]) -> str:
    """Return the SHA-256, in hex, of the arguments as a program gave them."""
    return hashlib.sha256(_canonical([args, kwargs]).encode()).hexdigest()


@dataclass(slots=True)
class ProgramCall:
    """One call of a program, by the entries about it.

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
        is_running: Whether it may be executed at this moment.
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
    is_running: bool = False

    @property
    def answer_id(self) -> str:
        """The id of the call that an answer is for: another one where it started before its program had come."""
        return self.id if self.suspended is None else self.suspended.call_id

    @property
    def is_open(self) -> bool:
        """True when the call has no reply and was not cancelled."""
        return self.reply is None and not self.cancelled

    @property
    def state(self) -> Literal["begun", "suspended", "ended", "cancelled"]:
        """The state that the call has come to."""
        open_state = "cancelled" if self.cancelled else "begun" if self.suspended is None else "suspended"
        return open_state if self.reply is None else "ended"

    # --- entries about it

    def started(self, grant: Grant | None) -> JournalEntry:
        """Return the entry that it may be executed from now on, by a grant if it needed one."""
        if grant is not None and grant.override_args is None and self.grant is not None:
            grant = replace(grant, override_args=self.grant.override_args)  # it is asked about with these, and has them
        typed = None if grant is None else [grant.override_args, grant.user_input]
        fields: dict[str, Any] = {"name": self.name, "digest": self.digest, "summary": dict(self.summary)}
        if grant is not None and not grant.standing and lenient(typed) == typed:
            fields["grant"] = grant
        return JournalEntry("started", self.id, fields)

    def ended(self, reply: Reply) -> JournalEntry:
        """Return the entry of its reply."""
        summary = self._brief_summary()
        if isinstance(reply, Value) and "result" in summary and summary["result"] is reply.value:
            del summary["result"]  # it need not be there twice
        return JournalEntry("ended", self.id, {"reply": reply, "summary": summary})

    def waits(self, outcome: Suspended) -> JournalEntry:
        """Return the entry that it waits for a person."""
        in_doubt = self.in_doubt or outcome.request.in_doubt
        fields = {"outcome": outcome, "in_doubt": in_doubt, "summary": self._brief_summary()}
        return JournalEntry("suspended", self.id, fields)

    def _brief_summary(self) -> dict[str, Any]:
        """Return the summary without what the entry of the start has."""
        return {name: value for name, value in self.summary.items() if name != "arguments"}

    def apply(self, entry: JournalEntry) -> None:
        """Change the call as an entry says; one whose approval store knows its start goes on waiting by its request."""
        found = entry.fields
        if entry.kind in ("ended", "suspended") and "summary" in found:
            for name in self.summary.keys() - {*found["summary"], "arguments"}:
                del self.summary[name]
            self.summary.update(found["summary"])
        if entry.kind in ("suspended", "ended", "cancelled"):
            self.is_running, self.in_doubt = False, found.get("in_doubt", False)
        self.cancelled = entry.kind == "cancelled" or (self.cancelled and entry.kind in ("value", "retried"))
        match entry.kind:
            case "started":
                self.begun, self.grant = self.begun + 1, found.get("grant")
                if self.suspended is None or not found.get("store_knows"):
                    self.is_running, self.suspended = True, None
            case "value":
                self.values.append(found["value"])
            case "suspended":
                self.suspended = found["outcome"]
            case "retried":  # it raised, and may have been done in part
                self.reply, self.in_doubt = None, True
            case "cancelled":
                self.reply, self.suspended = None, None
            case "ended":
                self.reply = found["reply"]
                if isinstance(self.reply, Value) and self.summary.get("outcome") == "completed":
                    self.summary.setdefault("result", self.reply.value)
            case _:
                raise ValueError(f"`{entry.kind}` is not the kind of an entry about a call")


def calls_in(entries: Iterable[JournalEntry]) -> list[ProgramCall]:
    """Return the calls of a program whose process ended, in the order in which it made them first.

    One that was running then is in doubt.
    """
    calls: dict[str, ProgramCall] = {}
    for entry in entries:
        if entry.kind == "started" and entry.call_id not in calls:
            found = entry.fields
            calls[entry.call_id] = ProgramCall(entry.call_id, found["name"], found["digest"], dict(found["summary"]))
        if (call := calls.get(entry.call_id)) is not None:
            call.apply(entry)
    for call in calls.values():
        call.in_doubt, call.is_running = call.in_doubt or call.is_running, False
    return list(calls.values())


def entries_of_first_version(calls: Iterable[Mapping[str, Any]]) -> Iterator[JournalEntry]:
    """Return the entries of calls as a paused program of the first version kept each of them, in one piece."""
    for call in calls:
        start = {name: call[name] for name in ("id", "name", "digest", "summary", "grant") if name in call}
        entries: list[dict[str, Any]] = [{"t": "started", **start}] * call.get("begun", 1)
        entries += [{"t": "value", "id": call["id"], "value": value} for value in call.get("values", ())]
        if "reply" in call:
            entries.append({"t": "ended", "id": call["id"], "reply": call["reply"]})
        elif "suspended" in call:
            in_doubt = call.get("in_doubt", False)
            entries.append({"t": "suspended", "id": call["id"], "outcome": call["suspended"], "in_doubt": in_doubt})
        elif call.get("cancelled"):
            entries.append({"t": "cancelled", "id": call["id"]})
        yield from map(JournalEntry.from_dict, entries)


class ProgramCalls:
    """The calls of one program that runs, and which calls of an earlier run it has yet to ask for again.

    Args:
        earlier: The entries of the earlier run.
        replays: Whether the program runs again from its start, and asks for each earlier call; else for the open ones.
        open_last: Whether the open calls are asked for after all the others; else in order. It matters where two calls
            are the same, and only one of them was made.
        repeated: The ids of calls that the program asks for again, even if it does not run again from its start.

    Attributes:
        entries: All entries that the program is resumed by.
        calls: All calls, in the order they were first made.
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
        self.entries = list(earlier)
        self.calls = calls_in(self.entries)
        self._expected: defaultdict[tuple[str, str], deque[ProgramCall]] = defaultdict(deque)
        self._order: dict[str, ProgramCall] = {}
        asked = [call for call in self.calls if replays or call.is_open or call.id in repeated]
        for call in asked:
            self._order[call.id] = call
        for call in sorted(asked, key=lambda call: open_last and call.is_open):
            self._expected[call.name, call.digest].append(call)

    def add(self, call: ProgramCall, entry: JournalEntry) -> None:
        """Add an entry about a call of this run."""
        self.entries.append(entry)
        call.apply(entry)

    @property
    def expected(self) -> ProgramCall | None:
        """The first call of the earlier run that was not asked for again; None when each was."""
        return next(iter(self._order.values()), None)

    def match(self, name: str, digest: str) -> ProgramCall | None:
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
        call = matching.popleft()
        del self._order[call.id]
        return call

    def diverged(self, step: str) -> ReplayDiverged | None:
        """Return the error for a program that came to `step` with calls left to ask for; None when no call is left."""
        return None if self.expected is None else ReplayDiverged(_described(self.expected), step)

    @property
    def open(self) -> list[ProgramCall]:
        """The calls without a reply that were not cancelled, in order."""
        return [call for call in self.calls if call.is_open]


def _described(call: ProgramCall) -> str:
    arguments = call.summary.get("arguments")
    if not isinstance(arguments, dict):
        return f"a call of `{call.name}`"
    shown = json.dumps(arguments, ensure_ascii=False)
    return f"a call of `{call.name}` with {shown if len(shown) <= _SHOWN_CHARS else shown[:_SHOWN_CHARS] + '...'}"
