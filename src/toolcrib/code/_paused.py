"""PausedProgram: a program that waits for a person, as a value that goes to another process and comes back."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.code._journal import JournalEntry
from toolcrib.errors import PausedProgramError

__all__ = ["PausedProgram", "SuspendedProgramCall"]

_MAGIC = b"toolcrib-paused"
_FORMAT = 1
_KEY_LEAST = 16  # bytes


@dataclass(frozen=True, slots=True)
class SuspendedProgramCall:
    """A call that a program waits for, and what a person is asked about it.

    Attributes:
        request: The question; `request.text()` is what to show.
        in_doubt: It was begun in a process that ended before it said how the call went: a grant makes it once more.
    """

    request: ApprovalRequest
    in_doubt: bool = False

    @property
    def tool(self) -> str:
        """The tool."""
        return self.request.tool

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The final arguments, with secrets hidden."""
        return self.request.arguments

    @property
    def digest(self) -> str:
        """SHA-256 over the tool's name and the final arguments: what a grant is bound to."""
        return self.request.digest

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.id

    @property
    def call_id(self) -> str:
        """The call's id."""
        return self.request.call_id

    def grant(self, approver: str = "host", **options: Any) -> Grant:
        """Return a yes to this call; see `ApprovalRequest.grant`."""
        return self.request.grant(approver, **options)

    def deny(self, message: str = "", approver: str = "host") -> Denial:
        """Return a no to this call; the program gets `message` in a PermissionError."""
        return self.request.deny(message, approver)


@dataclass(frozen=True, slots=True)
class PausedProgram:
    """A program that waits for a person: all that it takes to go on, here or in another process.

    It holds the real arguments and results of the program's calls: keep it as safe as those.

    Attributes:
        code: The program.
        engine: What ran it, with its version; only the same one can take it up.
        tools: The names it was offered, which it will be offered again.
        streams: Those whose values it takes one by one.
        signatures: How each tool is called, as it was told.
        replays: Whether it is run again from its start, its earlier calls answered as they were.
        state: The engine's own.
        journal: Its calls, in order.
        run: What is counted in its run, as far as it goes on counting.
        note: Whatever its host wants to find again with it, of JSON shapes: signed like the rest.
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

    @property
    def code_hash(self) -> str:
        """SHA-256 of the program's text, in hex."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def suspended_calls(self) -> tuple[SuspendedProgramCall, ...]:
        """The calls that wait for a person; see `ExecutionResult.suspended_calls`."""
        waiting = [entry for entry in self.journal if entry.is_open and entry.suspended is not None]
        return tuple(SuspendedProgramCall(e.suspended.request, e.in_doubt) for e in waiting if e.suspended is not None)

    def copied(self) -> list[JournalEntry]:
        """Return its calls for a run that goes on with them."""
        return [JournalEntry.from_dict(entry.to_dict()) for entry in self.journal]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes, unsigned."""
        return {
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
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PausedProgram:
        """Return the program that `to_dict` described, taken at its word.

        Raises:
            PausedProgramError: The program's text is not what it was.
        """
        paused = cls(
            data["code"],
            data["engine"],
            tuple(data["tools"]),
            frozenset(data["streams"]),
            data["signatures"],
            data["replays"],
            data["state"],
            tuple(JournalEntry.from_dict(entry) for entry in data["journal"]),
            data["run"],
            data["note"],
        )
        if paused.code_hash != data["code_hash"]:
            raise PausedProgramError("its text does not fit the hash that was kept with it")
        return paused

    def to_bytes(self, key: bytes | str) -> bytes:
        """Return the program as bytes that nobody without the key can change unnoticed; they can be read by anybody.

        Args:
            key: A secret of at least 16 bytes, such as `secrets.token_bytes(32)`.
        """
        signed = b"%s %d\n%s" % (_MAGIC, _FORMAT, json.dumps(self.to_dict(), separators=(",", ":")).encode())
        return b"%s\n%s" % (_mark(signed, key), signed)

    @classmethod
    def from_bytes(cls, data: bytes, key: bytes | str) -> PausedProgram:
        """Return the program that `to_bytes` wrote with this key.

        Raises:
            PausedProgramError: It is of another key or format, or was changed or cut.
        """
        mark, _, signed = data.partition(b"\n")
        head, _, body = signed.partition(b"\n")
        magic, _, version = head.partition(b" ")
        if magic != _MAGIC:
            raise PausedProgramError("this is none, or its beginning is lost")
        if version != b"%d" % _FORMAT:
            found = version.decode("ascii", "replace")[:20]
            raise PausedProgramError(f"it is written in format {found}, and this version of toolcrib reads {_FORMAT}")
        if not hmac.compare_digest(mark, _mark(signed, key)):
            raise PausedProgramError("it was signed with another key, or it was changed or cut since")
        return cls.from_dict(json.loads(body))


def _mark(signed: bytes, key: bytes | str) -> bytes:
    secret = key.encode() if isinstance(key, str) else key
    if len(secret) < _KEY_LEAST:
        raise ValueError(
            f"the key has {len(secret)} bytes, and must have {_KEY_LEAST} at least; make one with "
            "`secrets.token_bytes(32)` and keep it"
        )
    return hmac.new(secret, signed, hashlib.sha256).hexdigest().encode()
