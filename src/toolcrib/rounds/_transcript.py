"""Transcript: a provider's message list that knows its format, and can be checked and mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolcrib.formats import PROVIDERS, ProviderFormat, TranscriptProblem
from toolcrib.rounds._detect import WireFormat, shape_of

__all__ = ["Transcript", "shapes", "taken_ids"]


class Transcript(list[Any]):
    """A provider's message list: a list of its items, with the rules that the provider has for tool results.

    Args:
        items: What it holds: dicts, or objects of the provider's SDK.
        format: The wire format.
    """

    def __init__(self, items: Iterable[Any] = (), format: WireFormat = "openai") -> None:
        super().__init__(items)
        self.format: WireFormat = format

    def check(self) -> list[TranscriptProblem]:
        """Return what the provider would refuse, in order; empty when it is valid."""
        return PROVIDERS[self.format].check(shapes(self))

    def repair(self) -> list[str]:
        """Mend the list where it is, and return what was done, a sentence each; see `ProviderFormat.repair`."""
        mended, done = PROVIDERS[self.format].repair(shapes(self))
        if done:
            self[:] = mended
        return done

    def copy(self) -> Transcript:
        """Return another list of the same items."""
        return Transcript(self, self.format)


def shapes(items: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return the items of a message list as JSON shapes."""
    return [shape_of(item) for item in items]


def taken_ids(format: ProviderFormat, transcript: Sequence[Any]) -> set[str]:
    """Return the ids of the calls in a message list."""
    return {call.id for item in shapes(transcript) for call in format.calls_of(item)}
