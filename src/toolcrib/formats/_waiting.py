"""Which calls of a transcript wait for a result, found in one pass; where anything may be wrong, pairing says what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from toolcrib.formats._pairing import Layout
from toolcrib.formats._wire import WireCall

__all__ = ["CallKey", "WaitingRules"]

CallKey: TypeAlias = str | tuple[str, str]
"""What a result names its call by: an id; for Gemini an id, which may be empty, and the tool's name."""


class WaitingRules(ABC):
    """How one provider's items name calls and results, read without making anything of them."""

    layout: ClassVar[Layout]

    @abstractmethod
    def call_keys(self, item: Mapping[str, Any]) -> list[CallKey]:
        """Return the keys of the calls in an item of a transcript, in order."""

    @abstractmethod
    def result_keys(self, item: Mapping[str, Any]) -> list[CallKey] | None:
        """Return the keys of the results in an item of a transcript; None when one stands where it may not."""

    def call_ids(self, item: Mapping[str, Any]) -> list[str]:
        """Return the ids of the calls in an item of a transcript, in order."""
        return [key for key in self.call_keys(item) if isinstance(key, str)]

    def key_of(self, call: WireCall) -> CallKey:
        """Return the key of a call."""
        return call.id

    def usable(self, keys: Sequence[CallKey]) -> bool:
        """Return whether the calls of one item can be answered: each has an id, and no two have the same."""
        return all(keys) and len(set(keys)) == len(keys)

    def left(self, waiting: list[CallKey], answered: list[CallKey]) -> list[CallKey] | None:
        """Return which calls wait after some were answered; None when an answer is none of theirs."""
        if waiting == answered:
            return []
        rest = [*waiting]
        for key in answered:
            if key not in rest:
                return None
            rest.remove(key)
        return rest

    def waiting(self, items: Iterable[Mapping[str, Any]], taken: Collection[str] = ()) -> list[CallKey] | None:
        """Return the calls that wait for a result at the end of these items.

        Args:
            items: A whole transcript; or the rest of one, of which all that came before is in order.
            taken: The ids of the calls before, where an id names one call of the whole transcript.

        Returns:
            None when anything may be wrong with the items: the one reading that knows is `check`'s.
        """
        later, unique = self.layout.place == "later", self.layout.unique
        waiting: list[CallKey] = []
        seen: set[CallKey] = set()
        for item in items:
            answered = self.result_keys(item)
            if answered:
                rest = self.left(waiting, answered)
                if rest is None or (rest and self.layout.place == "next"):
                    return None
                waiting = rest
            elif answered is None or (waiting and not later):
                return None
            asked = self.call_keys(item)
            if not asked:
                continue
            if (answered and not later) or (waiting and not later) or not self.usable(asked):
                return None
            if unique and any(key in seen or key in taken for key in asked):
                return None
            seen.update(asked)
            waiting = waiting + asked if later else asked
        return waiting
