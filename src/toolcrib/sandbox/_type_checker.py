"""The type checker that comes with Monty, for programs that run anywhere."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolcrib.errors import MissingExtraError

__all__ = ["ChecksTypes", "TypeProblem", "type_checker"]

_lock = threading.Lock()
_made: list[ChecksTypes] = []


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """What a type checker says of one place of a program.

    Attributes:
        rule: Its own name for the problem, such as `invalid-argument-type`.
    """

    line: int
    rule: str
    message: str


@runtime_checkable
class ChecksTypes(Protocol):
    """A sandbox that has a type checker."""

    async def type_check(self, code: str, stubs: str) -> list[TypeProblem]:
        """Return what is wrong with a program's types, by line; nothing of it runs.

        Args:
            code: A program that parses.
            stubs: Declarations of the functions at hand.
        """
        ...


def type_checker() -> ChecksTypes:
    """Return the process's own type checker, made when it is first asked for.

    Raises:
        MissingExtraError: Monty is not installed.
    """
    with _lock:
        if not _made:
            try:
                module = importlib.import_module("toolcrib.sandbox._monty")
            except ImportError as error:
                raise MissingExtraError("checking the types of programs", "monty") from error
            _made.append(module.MontySandbox(workers=4))
        return _made[0]
