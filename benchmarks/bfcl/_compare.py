"""Where a run differs from the calls made directly in Python."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bfcl._data import Conversation
from benchmarks.bfcl._runs import Answer, Raised, Returned, Run
from benchmarks.bfcl._snapshots import mismatch

__all__ = ["Difference", "differences"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer or end state that is not what plain Python gives."""

    conversation: str
    place: str
    directly: str
    run: str

    def __str__(self) -> str:
        return f"{self.conversation}, {self.place}\n    directly  {self.directly}\n    this run  {self.run}"


def differences(conversation: Conversation, directly: Run, run: Run) -> list[Difference]:
    """Return every call whose answer differs, and the first difference in the end state of each object."""
    turns = zip(conversation.turns, directly.answers, run.answers, strict=True)
    found = [
        Difference(conversation.id, f"turn {number}, {call.text}", str(expected), str(got))
        for number, turn in enumerate(turns, 1)
        for call, expected, got in zip(*turn, strict=True)
        if not _same(expected, got)
    ]
    for name, state in directly.states.items():
        place = mismatch(state, run.states[name])
        if place is not None:
            where = f"end state of {name}{place.path}"
            found.append(Difference(conversation.id, where, repr(place.first), repr(place.second)))
    return found


def _same(expected: Answer, got: Answer) -> bool:
    match expected, got:
        case Returned(), Returned():
            return mismatch(expected.value, got.value) is None
        case Raised(), Raised():
            return expected == got
        case _:
            return False
