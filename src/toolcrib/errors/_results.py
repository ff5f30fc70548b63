"""Functions of a host that forget their `return`, or are async where nobody awaits them."""

from __future__ import annotations

import dis
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR, iscoroutinefunction
from types import CodeType
from typing import Any, Final, Never, NoReturn

_NEVER: Final = (Never, NoReturn, "Never", "NoReturn")
"""Annotations of functions that never return."""
_ANSWERS: Final[Mapping[str, Collection[str]]] = {
    "approver": ("always", "deny", "grant"),
    "gate": ("Ask", "Complete", "Completed", "Failed", "Reject", "Rejected"),
}
"""The names by which functions make their answers, of the kinds that may return None as well."""


def require_result(kind: str, fn: Callable[..., Any], result: str = "the answer that it makes") -> None:
    """Check that a function can return a value at all.

    One that ends without a value on every path forgets its `return`. Where None is an answer, as that of a gate, it
    would mean the opposite; there a function that makes no answer is left alone. A lambda returns what it says, also
    None. A function that leaves by a call, such as `sys.exit`, says so: `-> NoReturn`.

    Args:
        kind: The kind of function, for the error.
        fn: The function, or an object that is called.
        result: The value that it is to return, for the error.

    Raises:
        TypeError: It returns nothing.
    """
    code: Any = getattr(fn, "__code__", None) or getattr(getattr(type(fn), "__call__", None), "__code__", None)  # noqa: B004 -- the method
    leaves = getattr(fn, "__annotations__", {}).get("return") in _NEVER
    makes_none = kind in _ANSWERS and set(_ANSWERS[kind]).isdisjoint(code.co_names)
    if code is None or leaves or makes_none or not _returns_nothing(code):
        return
    raise TypeError(f"the {kind} `{_name(fn)}` returns nothing, so that its `return` is missing: return {result}")


def refuse_coroutine(kind: str, fn: Callable[..., Any], result: str) -> None:
    """Check that a function whose result nobody awaits is not async; raises TypeError."""
    if iscoroutinefunction(fn) or iscoroutinefunction(getattr(type(fn), "__call__", None)):  # noqa: B004 -- the method
        raise TypeError(f"the {kind} `{_name(fn)}` is async; write it as a plain `def`, which returns {result}")


def _name(fn: object) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


@lru_cache(maxsize=1024)
def _returns_nothing(code: CodeType) -> bool:
    """Return whether a function ends, and returns None wherever it does."""
    if code.co_name == "<lambda>" or code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
        return False
    ends, constant = False, None  # of the instruction before
    for step in dis.get_instructions(code):
        value = step.argval if step.opname == "RETURN_CONST" else constant
        if step.opname in ("RETURN_CONST", "RETURN_VALUE"):
            if value is not None or (step.opname == "RETURN_VALUE" and step.is_jump_target):
                return False  # what is jumped to, as in `return value or None`, has a value on the stack
            ends = True
        constant = step.argval if step.opname == "LOAD_CONST" else ...
    return ends
