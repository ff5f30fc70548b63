"""What a program prints, kept within bounds."""

from __future__ import annotations

from collections import deque

__all__ = ["Kept"]


class Kept:
    """Text that comes in pieces: the head and the tail of it are kept.

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
        """Take the next piece."""
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
        """Return what was kept, with the cut said where it was made."""
        head, tail = "".join(self._head), "".join(self._tail)
        tail = tail[-self._tail_most :] if self._tail_most else ""
        lost = self.size - len(head) - len(tail)
        return f"{head}{tail}" if lost <= 0 else f"{head}\n[... {lost} of {self.size} characters cut ...]\n{tail}"
