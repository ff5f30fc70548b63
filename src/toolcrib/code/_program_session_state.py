"""State of a session of programs: the data that its programs left, for a session that goes on in another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from toolcrib.calls import StoredFields, versioned
from toolcrib.code._signed import read_signed, signed_bytes
from toolcrib.errors import SessionStateError

_MAGIC: Final = b"toolcrib-session"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class ProgramSessionState:
    """The state of a session: data by name, which is read by the sandbox alone, and makes no objects but data.

    Carried are texts, numbers, bytes, dates and times, and lists, tuples, sets and dicts of them. Functions, classes,
    imports, tables, open files and other objects are left out. Two names for one list are two lists afterwards.

    It holds what the programs had: keep it as safe as that.

    Attributes:
        data: The values by name, as JSON shapes of the sandbox's own.
        left_out: The kinds of the values that are left out, by name.
        run: The id and the counters of the session's run.
        complete: Whether `data` and `left_out` are all names that the programs may have defined.

    Raises:
        SessionStateError: A name is not one that a program may leave.
    """

    data: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    run: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    complete: bool = True

    def __post_init__(self) -> None:
        for name in (*self.data, *self.left_out):
            if not name.isidentifier() or name.startswith("_"):
                raise SessionStateError(f"{name!r:.80} is not a name that a program may leave")

    @property
    def size(self) -> int:
        """The characters that its data takes as JSON."""
        return len(json.dumps(dict(self.data)))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON shapes, unsigned."""
        data = {"data": dict(self.data), "left_out": dict(self.left_out), "run": dict(self.run)}
        return versioned(ProgramSessionState, {**data, "complete": self.complete})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProgramSessionState:
        """Return the state that `to_dict` described.

        Raises:
            NewerForm: A newer version of Toolcrib wrote it.
            SessionStateError: A name is not one that a program may leave.
            ValueError: It is not the form of a session's state.
        """
        found = StoredFields(cls, data)
        parts = {name: found[name] for name in ("data", "left_out", "run")}
        wrong = [name for name, part in parts.items() if not isinstance(part, dict)]
        kinds: dict[str, Any] = parts["left_out"] if not wrong else {}
        if wrong or not all(isinstance(kind, str) for kind in kinds.values()):
            raise ValueError(f"this is not a session's state: the field `{(*wrong, 'left_out')[0]}` is not an object")
        return cls(parts["data"], cast("dict[str, str]", kinds), parts["run"], bool(found["complete"]))

    def to_bytes(self, key: bytes | str) -> bytes:
        """Return the state as signed bytes: a change without the key is noticed, but the bytes are not encrypted.

        Args:
            key: A secret of at least 16 bytes, such as `secrets.token_bytes(32)`.
        """
        return signed_bytes(_MAGIC, _FORMAT, self.to_dict(), key)

    @classmethod
    def from_bytes(cls, data: bytes, key: bytes | str) -> ProgramSessionState:
        """Return the state that `to_bytes` wrote with this key.

        Raises:
            SessionStateError: The bytes are of another key or format, or were changed or cut.
        """
        try:
            found = read_signed(_MAGIC, _FORMAT, data, key)
        except ValueError as error:
            raise SessionStateError(str(error)) from None
        return cls.from_dict(found)
