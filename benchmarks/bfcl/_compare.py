"""Where a run differs from the calls made directly in Python."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bfcl._data import Conversation
from benchmarks.bfcl._runs import Answer, Raised, Replay, Returned
from benchmarks.bfcl._snapshots import Mismatch, mismatch

__all__ = ["Difference", "differences"]

_SHOWN = 300  # characters of a value


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer or end state that is not what plain Python gives."""

    conversation: str
    place: str
    directly: str
    run: str

    def __str__(self) -> str:
        return f"{self.conversation}, {self.place}\n    directly  {self.directly}\n    this run  {self.run}"


def differences(conversation: Conversation, directly: Replay, run: Replay) -> list[Difference]:
    """Return every call whose answer differs, and the first difference in the end state of each object."""
    turns = zip(conversation.turns, directly.answers, run.answers, strict=True)
    places = [
        (f"turn {number}, {call.text}", _difference(expected, got))
        for number, turn in enumerate(turns, 1)
        for call, expected, got in zip(*turn, strict=True)
    ]
    places += [(f"end state of {name}", mismatch(state, run.states[name])) for name, state in directly.states.items()]
    return [
        Difference(conversation.id, f"{where}{found.path}", _shown(found.first), _shown(found.second))
        for where, found in places
        if found is not None
    ]


def _difference(expected: Answer, got: Answer) -> Mismatch | None:
    if isinstance(expected, Returned) and isinstance(got, Returned):
        return mismatch(expected.value, got.value, " -> ")
    return None if expected == got else Mismatch("", expected, got)


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, Returned | Raised) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
