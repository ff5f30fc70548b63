"""Turns of the user that are sent and not kept: each has a place in the transcript, and is not an item of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolcrib.errors import RoundError
from toolcrib.formats import Item, ProviderFormat, json_shape

_MODEL_ROLES = ("assistant", "model")


class UnkeptTurns:
    """Turns that are sent with each request until the model has answered.

    Attributes:
        turns: The place and the text of each; the place is the number of the items of the transcript before it.
    """

    def __init__(self, turns: Iterable[tuple[int, str]] = ()) -> None:
        self.turns = [(place, text) for place, text in turns]

    def add(self, transcript: Sequence[Any], text: str) -> None:
        """Add a turn after the last item of a transcript."""
        self.turns.append((len(transcript), text))

    def replace(self, texts: Sequence[str]) -> None:
        """Replace the turns by others in the same places: a process that comes back says what is so now."""
        places = [place for place, _ in self.turns]
        self.turns = [(places[min(at, len(places) - 1)], text) for at, text in enumerate(texts)]

    def require_question(self, transcript: Sequence[Any]) -> None:
        """Raise RoundError where nothing that is kept was said after the model's last answer, and a turn was."""
        if not self.turns or self.turns[-1][0] < len(transcript):
            return
        last = json_shape(transcript[-1]) if transcript else Item()
        if not last or last.get("role") in _MODEL_ROLES or last.get("type") == "model_output":
            mend = "say the question with `session.say(...)`, or ask a `session.copy()` what is not to be kept at all"
            raise RoundError((f"the transcript has no question, only turns that are not kept: {mend}",))

    def sent(self, messages: tuple[Item, ...], rules: ProviderFormat) -> tuple[Item, ...]:
        """Return the messages of a request with the turns in their places, as the provider takes them there."""
        if not self.turns:
            return messages
        sent_items, start = list[Any](), 0
        for place, text in self.turns:
            _append(rules, sent_items, messages[start:place])
            rules.add_user(sent_items, text)
            start = place
        _append(rules, sent_items, messages[start:])
        return tuple(sent_items)


def _append(rules: ProviderFormat, sent_items: list[Any], items: Sequence[Item]) -> None:
    """Append items of a transcript, of which the first may have to be joined with a turn before it."""
    if sent_items and items:
        rules.add_item(sent_items, items[0])
        items = items[1:]
    sent_items += items
