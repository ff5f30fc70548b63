"""Origins of values, and the questions that a person is asked about them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

OriginKind: TypeAlias = Literal[
    "user", "trusted", "derived", "untrusted", "model", "chosen", "bound", "flag", "private"
]
ASKED: Final = frozenset({"untrusted", "model", "chosen", "bound", "flag", "private"})
"""The kinds that are asked about for effects that leave the user's space, or cannot be undone."""
ASKED_INSIDE: Final = frozenset({"untrusted", "flag"})
"""The kinds that are asked about for effects inside the user's own space."""

_LIKE_A_PATH: Final = re.compile(r"[.\[\"]")
_INDEX: Final = re.compile(r'("(?:[^"\\]|\\.)*")|\[\d+\]')  # of a list; a key in quotes is left
_PLACE: Final = re.compile(r"[^`;()]*")  # without what ends a part of a question
_SENTENCES: Final[Mapping[OriginKind, str]] = {
    "user": "is what the user wrote",
    "trusted": "comes from {source}",
    "derived": "is made of what the user wrote and of trusted results",
    "untrusted": "comes from {source}, untrusted",
    "model": "is in nothing that the user wrote or that a trusted tool gave",
    "chosen": "comes from {source}, and was chosen after text of others had been read",
    "bound": "is a name that {source} gave in this run to something unknown",
    "flag": "is one of a few values, and may be what a stranger wants",
    "private": "comes from {source}, and may not be sent to them",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a value.

    Attributes:
        kind: `user` is the user's words, `trusted` a result of a trusted source, `derived` made of both. A person is
            asked about the others: `untrusted` is a result that a stranger may have written, `model` a value whose
            source only the model knows, `chosen` a trusted value that a stranger may have picked (of several ones, or
            of a record that he brought), `flag` true, false or nothing at all, and `private` a value on its way to
            those who may not read it.
        tool: The tool in whose result it was found.
        call_id: The call that had that result.
        about: The subject of that call, for a person.
        path: Where in the result.
        line: The line of the text there; 0 where that is not known.
        part: The component of the value that this is the origin of, as a flat text; empty for all of it.
        source: The place as marks have it, as JSON shapes: the result, or the arguments by which it was looked up.
        is_meant: Whether the user wrote another value of the record that it is in.
    """

    kind: OriginKind
    tool: str = ""
    call_id: str = ""
    about: str = ""
    path: str = ""
    line: int = 0
    part: str = ""
    source: tuple[Any, ...] = ()
    is_meant: bool = False

    @property
    def place(self) -> str:
        """The path in the result, and the line there."""
        line = f"line {self.line}" if self.line > 1 else ""
        return ", ".join(part for part in (self.path, line) if part)

    def text(self) -> str:
        """Return the origin as a person reads it."""
        place = ", ".join(_unquoted(part) for part in (self.about, self.place) if part)
        return _SENTENCES[self.kind].format(source=f"`{self.tool}`{f' ({place})' if place else ''}")

    def mark(self, tool: str, path: str, value: str, to: Collection[str] = ()) -> str:
        """Return the mark of a value of this origin in an argument of a tool: what an approval of it holds for.

        Args:
            tool: The tool that is given the value.
            path: Where among the arguments; which item of a list it is makes no difference.
            value: The value as text, not cut. The mark is of its component alone where that is an address: a part of a
                path, a link or a command decides nothing by itself.
            to: To whom it goes, where that counts.
        """
        source = digest_of(self.source) if self.source else ""
        is_whole = "/" in value or "\\" in value or "@" not in self.part
        approved = [value, self.part] if is_whole and self.part else [self.part or value]
        return digest_of([tool, _INDEX.sub(r"\1", path), *approved, self.kind, self.tool, source, *sorted(to)])


@dataclass(frozen=True, slots=True)
class Question:
    """The origin of a value, which a person may have to be asked about; without a path that of the call as a whole.

    Attributes:
        path: Where among the arguments.
        value: The value as text, cut.
        why: Its origin, as a person reads it.
        kind: The kind of its origin.
        mark: The tool, argument, value and origin that an approval of it holds for; empty where it holds for this call
            alone.
        tool: The tool in whose result the value was found.
        call_id: The call that had that result.
        place: Where in that result.
        part: The component of the value that it is about, cut; empty for all of it.
    """

    path: str
    value: str
    why: str
    kind: OriginKind = "model"
    mark: str = ""
    tool: str = ""
    call_id: str = ""
    place: str = ""
    part: str = ""

    @classmethod
    def of(cls, path: str, value: str, origin: Origin, mark: str = "") -> Question:
        """Return the question for a value, as text, of an origin."""
        return cls(
            path, value, origin.text(), origin.kind, mark, origin.tool, origin.call_id, origin.place, cut(origin.part)
        )

    @property
    def argument(self) -> str:
        """The name of the argument that has the value."""
        return argument_of(self.path)

    def text(self) -> str:
        """Return the question as a person reads it."""
        part = f"has {_quoted(self.part)}, which " if self.part and self.part != self.value else ""
        return f"{_unquoted(self.path)} {_quoted(self.value)} {part}{self.why}" if self.path else self.why

    def to_dict(self) -> dict[str, str]:
        """Return the question as JSON shapes."""
        return {**self.origin(), "why": self.why, "mark": self.mark}

    def origin(self) -> dict[str, str]:
        """Return the origin as JSON shapes, for a record: a value, and the call that it is from."""
        found = {"part": self.part, "tool": self.tool, "call_id": self.call_id, "place": self.place}
        return {"path": self.path, "value": self.value, "kind": self.kind, **{k: v for k, v in found.items() if v}}


def _quoted(text: str) -> str:
    """Return a value between backticks, or as JSON where it could pass for their end or would rearrange the line."""
    return f"`{text}`" if "`" not in text and text.isprintable() else json.dumps(text)


def _unquoted(text: str) -> str:
    """Return a place as it is, or as JSON where a key of a stranger's could pass for words of the question."""
    return text if _PLACE.fullmatch(text) and text.isprintable() else json.dumps(text)


def digest_of(shapes: Sequence[Any]) -> str:
    """Return a digest of JSON shapes."""
    return hashlib.sha256(json.dumps(shapes, sort_keys=True, default=str).encode()).hexdigest()


def argument_of(path: str) -> str:
    """Return the name of the argument that a path is in."""
    if path.startswith('"'):
        return str(json.JSONDecoder().raw_decode(path)[0])
    return path.split(".", 1)[0].split("[", 1)[0]


def path_of(path: str, key: str) -> str:
    """Return the path of a key below a path; a key that looks like a path is in quotes."""
    name = json.dumps(key) if _LIKE_A_PATH.search(key) is not None else key
    return f"{path}.{name}" if path else name


def cut(text: str, most: int = 80) -> str:
    """Return a text on one line, cut after so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "\u2026"
