"""Shape of a result, noted while its pieces are written, and texts that cost a model few tokens."""

from __future__ import annotations

from toolcrib._numbers import count_text
from toolcrib.results._pieces import Piece

_LISTS, _NAME, _CHARS = 8, 24, 160  # what is said of an object's lists: how many, of a name, and in all


class Shape:
    """The shape of a result, as far as its pieces were noted.

    Attributes:
        chars: How many characters they have; of a table, bytes.
        size: How many bytes.
        counts: The rows of each list, by the member that it is; None for a list by itself.
    """

    def __init__(self) -> None:
        self.chars = self.size = self._line_breaks = self._members = 0
        self.counts: dict[str | None, int] = {}

    def note(self, piece: Piece, size: int) -> None:
        """Count a piece of so many bytes."""
        self.chars += len(piece.text) or size
        self.size += size
        match piece.form:
            case "rows" | "table":
                self.counts[piece.key] = self.counts.get(piece.key, 0) + piece.count
            case "members":
                self._members += piece.count
            case "text" | "more":
                self._line_breaks += piece.text.count("\n")
            case "glue":
                pass

    def __str__(self) -> str:
        if None in self.counts:
            return f"list of {count_text(self.counts[None], 'row')}"
        members = self._members + len(self.counts)
        if not members:
            return f"text of {count_text(self._line_breaks + 1, 'line')}" if self._line_breaks else "text of one line"
        lists = [f"{_name(str(key))} ({count_text(count, 'row')})" for key, count in [*self.counts.items()][:_LISTS]]
        text = f"object of {count_text(members, 'member')}"
        text += f", lists: {', '.join(lists)}" if lists else ""
        return text if weight_of(text) <= _CHARS else f"{beginning(text, _CHARS)}..."


def weight_of(text: str) -> int:
    """Return the approximate cost of a text to a model: one for each letter of ASCII, and more for any other."""
    return len(text) if text.isascii() else sum(1 if letter < "\x80" else 6 for letter in text)


def beginning(text: str, most: int) -> str:
    """Return the beginning of a text that costs so much."""
    part = text[:most]
    while part and (excess := weight_of(part) - most) > 0:
        part = part[: -max(excess // 6, 1)]
    return part


def _name(text: str) -> str:
    """Return the name of a member in one line, as a stranger may have written it."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_NAME])
