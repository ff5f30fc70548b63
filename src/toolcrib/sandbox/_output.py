"""Output of a program: the text that is kept of it, and the limit at which the program is ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from toolcrib.sandbox._endings import ProgramEnded, printed_too_much
from toolcrib.sandbox._protocol import OutputStream, SandboxLimits


class CutText:
    """Text that comes in pieces: its head and its tail are kept.

    Attributes:
        size: Characters that came in all.
    """

    __slots__ = ("_head", "_head_room", "_tail", "_tail_most", "_tail_size", "size")

    def __init__(self, most: int) -> None:
        self.size = 0
        self._tail_most = most // 3
        self._head_room = most - self._tail_most
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0

    def add(self, text: str) -> None:
        """Add the next piece."""
        self.size += len(text)
        if self._head_room:
            head = text[: self._head_room]
            self._head.append(head)
            self._head_room -= len(head)
            text = text[len(head) :]
        if text and self._tail_most:
            self._tail.append(text[-self._tail_most :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= self._tail_most:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Return the text, with a note where it was cut."""
        head, tail = "".join(self._head), "".join(self._tail)
        tail = tail[-self._tail_most :] if self._tail_most else ""
        lost = self.size - len(head) - len(tail)
        return f"{head}{tail}" if lost <= 0 else f"{head}\n[... {lost} of {self.size} characters cut ...]\n{tail}"


class OutputMeter:
    """The output of one program.

    Args:
        limits: The characters that are kept of each stream, and those at which the program is ended.
        earlier: Characters of stdout and stderr that the host was given in an earlier run of the program.

    Attributes:
        out: The text of stdout.
        err: The text of stderr.
    """

    def __init__(self, limits: SandboxLimits, earlier: Sequence[int] = (0, 0)) -> None:
        self._limits = limits
        self._earlier = {"stdout": earlier[0], "stderr": earlier[1]}
        self.out, self.err = CutText(limits.output_kept), CutText(limits.output_kept)

    def add(self, text: str, stream: OutputStream) -> str:
        """Add text, and return the part of it that the host was not given in an earlier run.

        Raises:
            ProgramEnded: The program printed too much.
        """
        (self.out if stream == "stdout" else self.err).add(text)
        if sum(self.sizes) > self._limits.output_killed_at:
            raise ProgramEnded(printed_too_much(self._limits))
        earlier = self._earlier[stream]
        if earlier:
            self._earlier[stream] = max(earlier - len(text), 0)
            text = text[earlier:]
        return text

    @property
    def sizes(self) -> tuple[int, int]:
        """Characters of stdout and stderr so far."""
        return self.out.size, self.err.size
