"""Stored forms: the version of each, and the fields of a stored value as its `from_dict` reads them.

A form without a `version` is of version 1, so that a version costs no byte before it is needed. Who changes a form
raises its version in `FORM_VERSIONS`, gives fields that older forms lack a default where they are read, and adds a
golden file to `tests/stored`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn, cast

from toolcrib.errors import NewerForm

FORM_VERSIONS: Final[dict[str, int]] = {
    "Agent": 1,
    "AgentContext": 1,
    "ApprovalRequest": 6,
    "Call": 3,
    "Completed": 1,
    "ContextItem": 1,
    "ContextPool": 1,
    "ContextQueue": 1,
    "Denial": 1,
    "Execution": 1,
    "Failed": 1,
    "Grant": 6,
    "GrantUse": 2,
    "JournalEntry": 2,
    "Media": 1,
    "PausedProgram": 2,
    "ProgramClaim": 2,
    "ProgramResult": 1,
    "ProgramSessionState": 1,
    "ProgramWork": 1,
    "Rejected": 1,
    "Run": 1,
    "SavedProgram": 1,
    "ScheduledWork": 1,
    "Session": 2,
    "Settings": 1,
    "Suspended": 1,
    "Token": 1,
    "ToolRound": 5,
    "Turn": 1,
    "TurnRecord": 1,
    "TurnState": 1,
    "TurnWork": 1,
}
"""The version in which each form is written, by its class or name; that, and the versions before, are read."""


def versioned(owner: type | str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the stored form of a class, or of a name, with its version, which is not written where it is 1."""
    version = FORM_VERSIONS[_described(owner)[0] or ""]
    return data if version == 1 else {**data, "version": version}


def drop_unset(**fields: Any) -> dict[str, Any]:
    """Return the fields of a stored value without those that are None, False or an empty list."""
    return {name: value for name, value in fields.items() if value is not None and value is not False and value != []}


class StoredFields(dict[str, Any]):
    """The fields of a stored value; one that is missing is a ValueError, which names it and its class.

    Args:
        owner: The class, or its name; of a dataclass, the fields without a default must be there.
        data: The value, as its `to_dict` described it.

    Attributes:
        version: The version in which it was written; 1 where it does not say.

    Raises:
        NewerForm: It was written in a newer version of its form.
        ValueError: It is not a mapping, or a field is missing.
    """

    def __init__(self, owner: type | str, data: object) -> None:
        self._owner = owner if isinstance(owner, str) else owner.__name__
        if not isinstance(data, Mapping):
            mend = "; give what `json.loads(text)` returns" if isinstance(data, str | bytes) else ""
            article = "an" if self._owner[0] in "AEIOU" else "a"
            raise ValueError(f"{article} {self._owner} is read from a dict, and this is {type(data).__name__}{mend}")
        super().__init__(cast("Mapping[str, Any]", data))
        form, required = _described(owner)
        self.version = 1
        if form is not None:
            version = self.pop("version", 1)
            if type(version) is not int or version < 1:
                raise ValueError(
                    f"this is not a valid {self._owner}: its `version` is {version!r:.40}, and not a number from 1"
                )
            if version > FORM_VERSIONS[form]:
                raise NewerForm(form, version, FORM_VERSIONS[form])
            self.version = version
        for name in required:
            self[name]

    def __missing__(self, name: str) -> NoReturn:
        raise ValueError(f"this is not a valid {self._owner}: the field `{name}` is missing")


@lru_cache(maxsize=256)
def _described(owner: type | str) -> tuple[str | None, tuple[str, ...]]:
    """Return the form of an owner, None for a part of another; and, of a dataclass, the fields without a default."""
    if isinstance(owner, str):
        return owner if owner in FORM_VERSIONS else None, ()
    form = next((kind.__name__ for kind in owner.__mro__ if kind.__name__ in FORM_VERSIONS), None)
    if not is_dataclass(owner):
        return form, ()
    return form, tuple(field.name for field in fields(owner) if field.default is field.default_factory is MISSING)
