"""Inputs of a program besides the replies to its calls, so that another worker can be given the same ones.

The calls and their replies are in a journal, and the host's; this is a part of the engine's own state.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.errors import SandboxError
from toolcrib.sandbox._protocol import SaveState

_MOST_READINGS = 1_000_000
_MOST_BATCHES = 100_000
_BAD_STATE = "this is not the state of a paused program"


class Diverged(Exception):
    """The program does not do again what it did before; the message says where."""


class ReplayInputs:
    """The seed of one program, the readings of its clock, and the replies that it was given after each wait, by number.

    A call for which the program waits alone is not among the waits: the program is given its reply, whenever it comes.

    Attributes:
        is_live: Whether the program has come further than in the earlier run.
        seed: The seed of its random numbers, 32 hex digits.
        recorded: Readings of the clock, for the worker to give again.
        printed: Characters of stdout and stderr in the earlier run.
    """

    def __init__(self, engine: str, seed: str | None = None) -> None:
        self._engine = engine
        self.seed = seed or secrets.token_hex(16)
        self.recorded: list[int] = []
        self.printed = [0, 0]
        self._held_back: frozenset[int] = frozenset()
        self._is_cut = False  # the earlier run's process ended before the program paused, at a place that is not known
        self._save: SaveState | None = None
        self._calls = 0
        self._expected: list[list[int]] = []
        self._waits = 0
        self._clock = array("q")
        self._batches: list[list[int]] = []
        self.is_live = True

    @classmethod
    def from_state(cls, state: Mapping[str, Any], engine: str) -> ReplayInputs:
        """Return the inputs of a paused program.

        Raises:
            SandboxError: The state is not of this engine.
        """
        if state.get("engine") != engine:
            other = state.get("engine")
            raise SandboxError(
                f"the program was paused in {other!r:.100}, and cannot be resumed in another, {engine!r}"
            )
        seed = state.get("seed")
        if type(seed) is not str:
            raise SandboxError(_BAD_STATE)
        inputs = cls(engine, seed)
        inputs.recorded = _numbers(state.get("clock"))
        inputs.printed = _numbers(state.get("printed"))
        inputs._held_back = frozenset(_numbers(state.get("suspended")))
        inputs._expected = [_numbers(batch) for batch in _list(state.get("order"))]
        (inputs._calls,) = _numbers([state.get("calls")])
        inputs._is_cut = state.get("cut") is True
        if len(inputs.printed) != 2 or not (inputs._held_back or inputs._is_cut):
            raise SandboxError(_BAD_STATE)
        inputs.is_live = inputs._is_cut and not inputs._expected
        return inputs

    def save_to(self, save: SaveState) -> None:
        """Save each further entry as it is made, for the case that this process ends before the program does."""
        self._save = save
        if not self._is_cut and not self._held_back:  # a program that is resumed has its state already
            save({**(self.state([], 0, [0, 0]) or {}), "cut": True})

    # --- the earlier run

    def holds_back(self, call: int) -> bool:
        """Return whether a call is to be begun only when the program is where it paused.

        Raises:
            Diverged: The earlier run had no such call.
        """
        if self.is_live or self._is_cut:
            return False
        if call > self._calls:
            raise Diverged(f"it makes call {call}, and had made {self._calls}")
        return call in self._held_back

    def expected(self) -> list[int] | None:
        """Return the recorded batch after this wait; None when the program had paused here."""
        return self._expected[self._waits] if self._waits < len(self._expected) else None

    def go_live(self, calls: int) -> None:
        """Mark the program as being where it paused, after so many calls.

        Raises:
            Diverged: It is somewhere else.
        """
        if self._waits < len(self._expected) or calls != self._calls:
            now = f"{count_text(calls, 'call')} and {count_text(self._waits, 'wait')}"
            raise Diverged(f"it waits after {now}; it had made {count_text(self._calls, 'call')}")
        self.is_live = True

    # --- this run

    def add_readings(self, readings: Sequence[int]) -> None:
        """Add readings of the clock."""
        if readings and len(self._clock) <= _MOST_READINGS:
            known = max(0, len(self.recorded) - len(self._clock))
            self._clock.extend(readings)
            if self._save is not None and readings[known:]:
                self._save({"clock": list(readings[known:]), "cut": True})

    def add_batch(self, batch: list[int]) -> None:
        """Add the batch of a wait: ids of calls, or 0 for the time that the program asked for."""
        if self._save is not None and self._waits >= len(self._expected):
            self._save({"order": [batch], "cut": True})
        self._waits += 1
        if self._is_cut and self._waits >= len(self._expected):
            self.is_live = True
        if len(self._batches) <= _MOST_BATCHES:
            self._batches.append(batch)

    def state(self, suspended: list[int], calls: int, printed: Sequence[int]) -> dict[str, Any] | None:
        """Return the state from which the program is resumed; None when it is too long to keep."""
        if len(self._clock) > _MOST_READINGS or len(self._batches) > _MOST_BATCHES:
            return None
        return {
            "engine": self._engine,
            "seed": self.seed,
            "clock": self._clock.tolist(),
            "order": self._batches,
            "calls": calls,
            "suspended": suspended,
            "printed": list(printed),
        }


def _list(found: Any) -> list[Any]:
    if type(found) is not list:
        raise SandboxError(_BAD_STATE)
    return cast("list[Any]", found)


def _numbers(found: Any) -> list[int]:
    numbers = _list(found)
    if not all(type(number) is int for number in numbers):
        raise SandboxError(_BAD_STATE)
    return numbers
