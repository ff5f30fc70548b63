"""Short reprs of frozen values: what is not said otherwise is left out."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class ShortRepr:
    """The base of a dataclass whose repr has the fields alone that differ from their defaults."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = fields(cast("DataclassInstance", self))
        shown = [part for part in parts if part.repr and not _is_default(part, getattr(self, part.name))]
        return f"{type(self).__name__}({', '.join(f'{part.name}={getattr(self, part.name)!r}' for part in shown)})"


def _is_default(part: Field[Any], value: Any) -> bool:
    default = part.default_factory() if part.default_factory is not MISSING else part.default
    return type(default) is type(value) and bool(default == value)
