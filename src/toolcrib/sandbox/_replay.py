"""What a program was given and when, kept so that another worker can be given the same, up to where it paused."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolcrib.errors import SandboxError

__all__ = ["Diverged", "ReplayLog"]

_READINGS = 1_000_000
_BATCHES = 100_000
_BAD = "this state is none that a paused program was left in"


class Diverged(Exception):
    """The program does not do again what it did before; the message says where."""


class ReplayLog:
    """The way of one program: seed, readings of its clock, and what it was given after each wait.

    A call that waits by itself is not among the waits: what it is given is its own reply, whenever it is there.

    Attributes:
        is_live: Whether it goes where it has not been before.
        seed: What its random numbers come from, 32 hex digits.
        recorded: Readings of the clock to be given again.
        told: Characters of stdout and stderr that the host has heard already.
    """

    def __init__(self, engine: str, seed: str | None = None) -> None:
        self._engine = engine
        self.seed = seed or secrets.token_hex(16)
        self.recorded: list[int] = []
        self.told = [0, 0]
        self._held: frozenset[int] = frozenset()
        self._is_cut = False  # its process ended before it paused: how far it came is not known to the call
        self._remember: Callable[[Mapping[str, Any]], None] | None = None
        self._calls = 0
        self._past: list[list[int]] = []
        self._at = 0
        self._clock = array("q")
        self._order: list[list[int]] = []
        self.is_live = True

    @classmethod
    def of(cls, state: Mapping[str, Any], engine: str) -> ReplayLog:
        """Return the way that a paused program went.

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
            raise SandboxError(_BAD)
        course = cls(engine, seed)
        course.recorded = _numbers(state.get("clock"))
        course.told = _numbers(state.get("told"))
        course._held = frozenset(_numbers(state.get("pending")))
        course._past = [_numbers(batch) for batch in _list(state.get("order"))]
        (course._calls,) = _numbers([state.get("calls")])
        course._is_cut = state.get("cut") is True
        if len(course.told) != 2 or not (course._held or course._is_cut):
            raise SandboxError(_BAD)
        course.is_live = course._is_cut and not course._past
        return course

    def told_to(self, remember: Callable[[Mapping[str, Any]], None]) -> None:
        """Have each further step of the way kept as it is taken, for the case that this process does not live."""
        self._remember = remember
        if not self.recorded and not self._past and not self._held:
            remember({**(self.state([], 0, [0, 0]) or {}), "cut": True})

    # --- the way again

    def holds(self, call: int) -> bool:
        """Return whether a call is to be begun only when the program is where it paused.

        Raises:
            Diverged: It was not called then.
        """
        if self.is_live or self._is_cut:
            return False
        if call > self._calls:
            raise Diverged(f"it makes call {call}, and had made {self._calls}")
        return call in self._held

    def expected(self) -> list[int] | None:
        """Return what the program was given after this wait; None when it had paused here."""
        return self._past[self._at] if self._at < len(self._past) else None

    def arrive(self, made: int) -> None:
        """Note that the program is where it paused, after so many calls.

        Raises:
            Diverged: It is somewhere else.
        """
        if self._at < len(self._past) or made != self._calls:
            raise Diverged(f"it waits after {made} calls and {self._at} waits; it had made {self._calls} calls")
        self.is_live = True

    # --- the way as it is

    def read(self, readings: Sequence[int]) -> None:
        """Note readings of the clock."""
        if readings and len(self._clock) <= _READINGS:
            known = max(0, len(self.recorded) - len(self._clock))
            self._clock.extend(readings)
            if self._remember is not None and readings[known:]:
                self._remember({"clock": list(readings[known:]), "cut": True})

    def given(self, batch: list[int]) -> None:
        """Note what the program was given after a wait: ids of calls, or 0 for the time it asked for."""
        if self._remember is not None and self._at >= len(self._past):
            self._remember({"order": [batch], "cut": True})
        self._at += 1
        if self._is_cut and self._at >= len(self._past):
            self.is_live = True
        if len(self._order) <= _BATCHES:
            self._order.append(batch)

    def state(self, pending: list[int], made: int, told: list[int]) -> dict[str, Any] | None:
        """Return what the program is resumed from; None when that is too long to keep."""
        if len(self._clock) > _READINGS or len(self._order) > _BATCHES:
            return None
        return {
            "engine": self._engine,
            "seed": self.seed,
            "clock": self._clock.tolist(),
            "order": self._order,
            "calls": made,
            "pending": pending,
            "told": told,
        }


def _list(found: Any) -> list[Any]:
    if type(found) is not list:
        raise SandboxError(_BAD)
    return cast("list[Any]", found)


def _numbers(found: Any) -> list[int]:
    numbers = _list(found)
    if not all(type(number) is int for number in numbers):
        raise SandboxError(_BAD)
    return numbers
