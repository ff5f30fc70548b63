"""Where in a program an error came from: its own frames, lines and expressions."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Place", "Sources"]


class Sources:
    """The texts of the programs that ran here, by the name their code has."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._last: dict[str, int] = {}

    def add(self, name: str, code: str) -> str:
        """Keep a program's text; return the name to compile it under, which is its own unless that is taken."""
        own, number = name, self._last.get(name, 1)
        while own in self._lines:
            number += 1
            own = f"{name} ({number})"
        self._last[name] = number
        self._lines[own] = code.splitlines()
        return own

    def line(self, name: str, number: int) -> str:
        """Return a line of a program, empty for one that it does not have."""
        lines = self._lines.get(name, [])
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def places(self, trace: types.TracebackType | None) -> Iterator[Place]:
        """Yield where in programs an error passed, outermost first; code of an `exec` of theirs counts."""
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in self._lines or name == "<string>":
                number = trace.tb_lineno or 0
                yield Place(trace.tb_frame, name, number, self.line(name, number), trace.tb_lasti)
            trace = trace.tb_next


@dataclass(frozen=True, slots=True)
class Place:
    """A frame of a program, and where in it.

    Attributes:
        file: The name of its code.
        line: Counted from 1.
        text: That line.
        instruction: What it was about to do.
    """

    frame: types.FrameType
    file: str
    line: int
    text: str
    instruction: int

    @property
    def expression(self) -> str:
        """The part of the line that failed; empty when it is not on one line."""
        positions = itertools.islice(self.frame.f_code.co_positions(), self.instruction // 2, None)
        line, last, start, end = next(positions, (None, None, None, None))
        if line != self.line or last != line or start is None or end is None:
            return ""
        return self.text.encode()[start:end].decode(errors="replace")
