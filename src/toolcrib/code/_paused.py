"""Paused programs: a program that waits for a person as a value, in signed bytes, and the answers to its calls."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Never

from toolcrib.approvals import meant_by, misfit
from toolcrib.calls import (
    ApprovalRequest,
    Denial,
    Grant,
    Identity,
    StoredFields,
    Suspended,
    outcome_from_dict,
    versioned,
)
from toolcrib.code._journal import JournalEntry
from toolcrib.code._program_calls import ProgramCall, calls_in, entries_of_first_version
from toolcrib.code._program_tools import tools_in
from toolcrib.code._signed import read_signed, signed_bytes
from toolcrib.errors import ApprovalError, PausedProgramError

_MAGIC = b"toolcrib-paused"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SuspendedProgramCall:
    """A call of a paused program that waits for a person.

    Attributes:
        request: The approval request; `request.text()` is what to show.
        in_doubt: Whether the call was begun and is not known to have ended: a grant makes it once more.
    """

    request: ApprovalRequest
    in_doubt: bool = False

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.request.tool

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The final arguments, with secrets hidden."""
        return self.request.arguments

    @property
    def digest(self) -> str:
        """SHA-256 over the tool's name and the final arguments, to which a grant is bound."""
        return self.request.digest

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.id

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.request.call_id

    def grant(self, by: str | Identity = "host", **options: Any) -> Grant:
        """Return a yes to this call; see `ApprovalRequest.grant`."""
        return self.request.grant(by, **options)

    def deny(self, *unnamed: Never, by: str | Identity = "host", message: str = "", **unknown: Never) -> Denial:
        """Return a no to this call; the program gets `message` in a PermissionError."""
        return self.request.deny(*unnamed, by=by, message=message, **unknown)


@dataclass(frozen=True, slots=True)
class PausedProgram:
    """A program that waits for a person, with all that is needed to resume it, here or in another process.

    It holds the real arguments and results of the program's calls: keep it as safe as those.

    Attributes:
        code: The program.
        engine: The engine that ran the program, with its version; only the same one can resume it.
        tools: The names of the tools that the program was offered; when it goes on, those that are there then.
        streams: Those of them whose values the program takes one by one.
        signatures: How each tool is called.
        replays: Whether the program runs again from its start, its earlier calls answered as before.
        state: The engine's own state.
        journal: The entries of its journal about its calls.
        run: The id and the counters of the program's run.
        note: Data of the host's own, of JSON shapes: signed like the rest.
        files: The files that it was given; it is given the same when it goes on.
        question: The question about the program itself, where it has not begun: it was written after text of others was
            read, and the policy is frozen.
    """

    code: str
    engine: str
    tools: tuple[str, ...] = ()
    streams: frozenset[str] = frozenset()
    signatures: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    replays: bool = True
    state: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    journal: tuple[JournalEntry, ...] = field(default=(), repr=False)
    run: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    note: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    question: Suspended | None = None

    @property
    def code_hash(self) -> str:
        """SHA-256 of the program's text, in hex."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def calls(self) -> list[ProgramCall]:
        """The program's calls, in the order in which it made them first."""
        return calls_in(self.journal)

    @property
    def suspended_calls(self) -> tuple[SuspendedProgramCall, ...]:
        """The calls that wait for a person, the program's own first; see `ExecutionResult.suspended_calls`."""
        asked = () if self.question is None else (SuspendedProgramCall(self.question.request),)
        waiting = ((call.suspended, call.in_doubt) for call in self.calls if call.is_open)
        return (
            *asked,
            *(SuspendedProgramCall(call.request, in_doubt) for call, in_doubt in waiting if call is not None),
        )

    @property
    def functions(self) -> tuple[str, ...]:
        """The tools that it needs to go on, of those it was offered: those that its code mentions or that it called."""
        return tools_in(" ".join([self.code, *(call.name for call in self.calls)]), self.tools)

    def with_entries(self, entries: Iterable[JournalEntry]) -> PausedProgram:
        """Return the program where it stopped, by the entries of a journal that were written since."""
        state, calls = dict(self.state), list(self.journal)
        for entry in entries:
            if entry.kind != "state":
                calls.append(entry)
                continue
            for name, part in entry.fields["state"].items():
                known = state.get(name)
                state[name] = [*known, *part] if isinstance(known, list) and isinstance(part, list) else part
        return replace(self, journal=tuple(calls), state=state)

    def entry(self) -> JournalEntry:
        """Return the entry by which a journal has the program."""
        return JournalEntry("program", fields={"program": self.to_dict()})

    def to_dict(self) -> dict[str, Any]:
        """Return the program as JSON shapes, unsigned."""
        data: dict[str, Any] = {
            "code": self.code,
            "code_hash": self.code_hash,
            "engine": self.engine,
            "tools": list(self.tools),
            "streams": sorted(self.streams),
            "signatures": dict(self.signatures),
            "replays": self.replays,
            "state": dict(self.state),
            "journal": [entry.to_dict() for entry in self.journal],
            "run": dict(self.run),
            "note": dict(self.note),
            "files": {name: b64encode(data).decode() for name, data in self.files.items()},
            **({} if self.question is None else {"question": self.question.to_dict()}),
        }
        return versioned("PausedProgram", data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PausedProgram:
        """Return the program that `to_dict` described; nothing but the hash of its text is checked.

        Raises:
            PausedProgramError: The program's text is not what it was.
            ValueError: A field is missing.
        """
        data = StoredFields(cls, data)
        is_first = data.version == 1
        entries = (
            entries_of_first_version(data["journal"]) if is_first else map(JournalEntry.from_dict, data["journal"])
        )
        paused = cls(
            data["code"],
            data["engine"],
            tuple(data["tools"]),
            frozenset(data["streams"]),
            data["signatures"],
            data["replays"],
            data["state"],
            tuple(entries),
            data["run"],
            data["note"],
            {name: b64decode(text) for name, text in data.get("files", {}).items()},
            _question_from(data.get("question")),
        )
        if paused.code_hash != data["code_hash"]:
            raise PausedProgramError("its text does not fit the hash that was kept with it")
        return paused

    def to_bytes(self, key: bytes | str) -> bytes:
        """Return the program as signed bytes: a change without the key is noticed, but the bytes are not encrypted.

        Args:
            key: A secret of at least 16 bytes, such as `secrets.token_bytes(32)`.
        """
        return signed_bytes(_MAGIC, _FORMAT, self.to_dict(), key)

    @classmethod
    def from_bytes(cls, data: bytes, key: bytes | str) -> PausedProgram:
        """Return the program that `to_bytes` wrote with this key.

        Raises:
            PausedProgramError: The bytes are of another key or format, or were changed or cut.
        """
        try:
            found = read_signed(_MAGIC, _FORMAT, data, key)
        except ValueError as error:
            raise PausedProgramError(str(error)) from None
        return cls.from_dict(found)


def _question_from(data: Mapping[str, Any] | None) -> Suspended | None:
    outcome = None if data is None else outcome_from_dict(data)
    return outcome if isinstance(outcome, Suspended) else None


def answers_by_call(paused: PausedProgram, answers: Iterable[Grant | Denial]) -> dict[str, Grant | Denial]:
    """Return the answers by call id; a standing grant that names no call answers every one that it fits.

    Raises:
        ApprovalError: One answers no suspended call or does not fit it, or a call has two answers; nothing ran.
    """
    found: dict[str, Grant | Denial] = {}
    for answer in answers:
        for call in meant_by(answer, ((call, call.request) for call in paused.suspended_calls)):
            if isinstance(answer, Grant) and (why := misfit(answer, call.request)):
                raise ApprovalError(answer.tool, why)
            if call.call_id in found:
                raise ApprovalError(answer.tool, f"there is another answer to the call {call.call_id}")
            found[call.call_id] = answer
    return found


def paused_program_in(entries: Iterable[JournalEntry]) -> PausedProgram | None:
    """Return the last program in a journal where it stopped; None when no program began, or the last one ended.

    Raises:
        PausedProgramError: Its engine does not run a program again.
    """
    found: PausedProgram | None = None
    later: list[JournalEntry] = []
    for entry in entries:
        if entry.kind == "program":
            found, later = PausedProgram.from_dict(entry.fields["program"]), []
        elif entry.kind == "done":
            found = None
        elif found is not None:
            later.append(entry)
    if found is not None and later and not found.replays:
        raise PausedProgramError(
            f"its process ended while it ran, and {found.engine} does not run a program again: it goes on from "
            "`result.paused` only"
        )
    return None if found is None else found.with_entries(later)
