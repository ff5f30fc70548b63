"""Kept results: what stands for a result that is too long for its reader, and who that reader is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolcrib.calls._stored import StoredFields
from toolcrib.calls._value_class import value_class

Blocks: TypeAlias = Callable[[object], str | None]
"""The content blocks that a way in has of its own: returns a block's text, empty for a picture, None for no block."""


@value_class
class KeptResult:
    """A result that a result store keeps, because it is too long to be shown.

    Attributes:
        handle: By which `read_result` reads it.
        text: The text shown in its place: a description, its head and tail, and how to read the rest.
        chars: How many characters it has; of a table that is kept as columns, bytes.
        has_parts: Whether it also has media or content blocks, which are shown beside the text.
    """

    handle: str
    text: str
    chars: int
    has_parts: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes."""
        return {"handle": self.handle, "text": self.text, "chars": self.chars, "has_parts": self.has_parts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KeptResult:
        """Return the kept result that `to_dict` described."""
        data = StoredFields(cls, data)
        return cls(data["handle"], data["text"], data["chars"], data["has_parts"])


@dataclass(frozen=True, slots=True)
class ResultReader:
    """The reader of the results of a run's calls.

    Attributes:
        blocks: The content blocks that the reader takes as they are.
        value_chars: The most characters of a result that is given as a value, to a program; None for a model, which
            is given text.
    """

    blocks: Blocks | None = None
    value_chars: int | None = None


MODEL = ResultReader()
"""A model that reads text."""
