"""The clock of a turn: a deadline, or none."""

from __future__ import annotations

from types import TracebackType
from typing import TypeAlias

from toolcrib.tools import Deadline

__all__ = ["UNBOUNDED", "Clock"]


class _Unbounded:
    """The clock of a turn that may take any time; does what a `Deadline` does that never passes."""

    __slots__ = ()

    def begin(self) -> None:
        """Say that a step begins."""

    def rest(self) -> None:
        """Say that a step is over."""

    def close(self) -> None:
        """Say that no step comes any more."""

    def __enter__(self) -> _Unbounded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


Clock: TypeAlias = Deadline | _Unbounded
UNBOUNDED = _Unbounded()
