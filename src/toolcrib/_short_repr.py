"""Short reprs: of a value what is not said otherwise, and of an object which one it is."""

from __future__ import annotations

import reprlib
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MOST_CHARS = 200
_SHORT = reprlib.Repr()
_SHORT.maxstring, _SHORT.maxother = 60, 200
_MOST_OF_VALUE = 100


class ShortRepr:
    """The base of a dataclass whose repr has the fields alone that differ from their defaults, in some 200 characters.

    The fields after these are not read, and a long value is cut.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        text = ""
        for part in fields(cast("DataclassInstance", self)):
            value = getattr(self, part.name) if part.repr else None
            if not part.repr or _is_default(part, value):
                continue
            of_value = _SHORT.repr(value)
            of_value = of_value if len(of_value) <= _MOST_OF_VALUE else f"{of_value[:_MOST_OF_VALUE]}..."
            shown = f"{', ' if text else ''}{part.name}={of_value}"
            if len(text) + len(shown) > _MOST_CHARS - len(type(self).__name__):
                text += ", ..."
                break
            text += shown
        return f"{type(self).__name__}({text})"


class FileRepr:
    """The base of an object whose repr says the path of its file."""

    __slots__ = ()
    path: Path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.path)!r}>"


def kind_of(value: object) -> str:
    """Return the name of a value's class with its article, as `an int`."""
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _is_default(part: Field[Any], value: Any) -> bool:
    default = part.default_factory() if part.default_factory is not MISSING else part.default
    return type(default) is type(value) and bool(default == value)
