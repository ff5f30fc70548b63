"""Functions of a host that forget their `return`, or are async where nobody awaits them."""

from __future__ import annotations

import dis
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR, iscoroutinefunction
from types import CodeType
from typing import Any, Final

_NEVER: Final = ("Never", "NoReturn")
"""Annotations of functions that never return."""
_OPEN_ENDS: Final = ("POP_JUMP", "JUMP_IF", "FOR_ITER", "END_ASYNC_FOR", "STORE_", "DELETE_")
"""Instructions whose place in the source a return has that nobody wrote: a condition, a loop, or an assignment.

A return that is written has a place of its own. What ends in a call may never return, and is not among them.
"""
_ANSWERS: Final[Mapping[str, Collection[str]]] = {
    "approver": ("always", "deny", "grant"),
    "gate": ("Ask", "Complete", "Completed", "Failed", "Reject", "Rejected"),
}
"""The names by which functions make their answers, of the kinds that may return None as well."""


def require_result(
    kind: str, fn: Callable[..., Any], result: str = "the answer that it makes", *, takes_none: bool = True
) -> None:
    """Check that a function can return a value at all, and on each path, unless None is an answer.

    One that ends without a value on every path forgets its `return`. Where None is an answer, as that of a gate, it
    would mean the opposite; there a function that makes no answer is left alone. A lambda returns what it says, also
    None. A function that leaves by a call, such as `sys.exit`, says so: `-> NoReturn`.

    Of several paths, one lacks its `return` where a condition, a loop or an assignment is the last of it. One that ends
    in a call is left alone, as the call may raise, and so is a function with `try` or `with`.

    Args:
        kind: The kind of function, for the error.
        fn: The function, or an object that is called.
        result: The value that it is to return, for the error.
        takes_none: Whether a path without `return` is an answer as well.

    Raises:
        TypeError: It returns nothing, or nothing on one of its paths.
    """
    called: Any = fn if getattr(fn, "__code__", None) else getattr(type(fn), "__call__", None)  # noqa: B004 -- the method
    code: Any = getattr(called, "__code__", None)
    if code is None or (kind in _ANSWERS and set(_ANSWERS[kind]).isdisjoint(code.co_names)):
        return
    annotation = str(getattr(called, "__annotations__", {}).get("return")).strip("'\"")
    if annotation.rpartition(".")[2] in _NEVER:
        return
    returns_nothing, line = _ends_of(code)
    if returns_nothing:
        mend = f"return {result}, or write `-> NoReturn` where it always raises"
        raise TypeError(f"the {kind} `{_name(fn)}` returns nothing, so that its `return` is missing: {mend}")
    if line and not takes_none:
        mend = f"return {result}, or write `return None` where that is meant"
        raise TypeError(f"the {kind} `{_name(fn)}` returns nothing where it ends after line {line}: {mend}")


def refuse_coroutine(kind: str, fn: Callable[..., Any], result: str) -> None:
    """Check that a function whose result nobody awaits is not async; raises TypeError."""
    if iscoroutinefunction(fn) or iscoroutinefunction(getattr(type(fn), "__call__", None)):  # noqa: B004 -- the method
        raise TypeError(f"the {kind} `{_name(fn)}` is async; write it as a plain `def`, which returns {result}")


def _name(fn: object) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


@lru_cache(maxsize=1024)
def _ends_of(code: CodeType) -> tuple[bool, int]:
    """Return whether a function returns None wherever it ends, and the line of an end without `return`; 0 for none."""
    if code.co_name == "<lambda>" or code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
        return False, 0
    ends, has_value, line, constant = False, False, 0, None  # the constant is of the instruction before
    steps = [*dis.get_instructions(code)]
    is_unclear = any(step.opname == "PUSH_EXC_INFO" for step in steps)  # a return in `with` has the place of others
    is_unclear |= any(name[0] == "@" for name in code.co_varnames)  # `assert False` as pytest writes it
    open_ends = {step.positions for step in steps if not is_unclear and step.opname.startswith(_OPEN_ENDS)}
    for step in steps:
        value = step.argval if step.opname == "RETURN_CONST" else constant
        if step.opname in ("RETURN_CONST", "RETURN_VALUE"):
            ends = True
            if value is not None or (step.opname == "RETURN_VALUE" and step.is_jump_target):
                has_value = True  # what is jumped to, as in `return value or None`, has a value on the stack
            elif step.positions in open_ends and step.positions and step.positions.col_offset is not None:
                line = line or step.positions.lineno or 0
        constant = step.argval if step.opname == "LOAD_CONST" else ...
    return ends and not has_value, line
