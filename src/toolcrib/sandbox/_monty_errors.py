"""Errors of Monty as a program's errors: with the program's own lines, and what to write instead."""

from __future__ import annotations

import builtins
import re

from pydantic_monty import Frame, MontyError, MontyRuntimeError, MontySyntaxError

from toolcrib.calls import cut
from toolcrib.errors import closest
from toolcrib.sandbox._endings import computed_too_long, out_of_memory
from toolcrib.sandbox._protocol import ErrorKind, Program, ProgramError
from toolcrib.sandbox._worker.date_hints import hint_for_attribute, hint_for_operation

_KNOWN = frozenset(
    {
        *("ArithmeticError", "AssertionError", "AttributeError", "FileExistsError", "FileNotFoundError", "ImportError"),
        *("IndexError", "IsADirectoryError", "KeyError", "LookupError", "MemoryError", "ModuleNotFoundError"),
        *("NameError", "NotADirectoryError", "NotImplementedError", "OSError", "OverflowError", "PermissionError"),
        *("RecursionError", "RuntimeError", "SyntaxError", "TimeoutError", "TypeError", "UnboundLocalError"),
        *("ValueError", "ZeroDivisionError"),
    }
)
_MESSAGE = 4_000  # characters
_REPEATED = 3  # frames of one line that are shown
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_MISFIT = re.compile(r"`(\w+)` cannot take these arguments")
_NO_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_AWAITABLE = ("can't be awaited", "an awaitable is required")
_NO_SUSPEND = "cannot suspend in this synchronous context"
_ONE_TEXT = "exceptions can only be called with zero or one string argument"
_UNSUPPORTED = "does not yet support"


def known_exception(name: str) -> str:
    """Return the builtin exception that Monty knows and that is nearest above the one called `name`."""
    found: object = getattr(builtins, name, None)
    kind = found if isinstance(found, type) and issubclass(found, BaseException) else None
    for parent in kind.__mro__ if kind is not None else ():
        if parent.__name__ in _KNOWN:
            return parent.__name__
    return "RuntimeError"


def program_error(error: MontyError, program: Program) -> ProgramError:
    """Return the error that ended a program, with the program's own lines."""
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return ProgramError("exception", "RuntimeError", cut(str(error), _MESSAGE))
    frames = error.traceback()
    name, _, message = error.display("type-msg").partition(": ")
    limit = None if frames and name == "TimeoutError" else _limit(name, message, program)
    if limit is not None:
        kind, message = limit
        return ProgramError(kind, name, message, frames[-1].line if frames else 0)
    kind: ErrorKind = "syntax" if isinstance(error, MontySyntaxError) or _UNSUPPORTED in message else "exception"
    message = _explained(name, cut(message, _MESSAGE), program)
    if name == "KeyError" and message:
        message = repr(message)  # as Python writes it
    program_frames = [frame for frame in frames if frame.filename != "<string>"]
    text = _traceback(frames, program, f"{name}: {message}" if message else name)
    return ProgramError(kind, name, message, program_frames[-1].line if program_frames else 0, text)


def _limit(name: str, message: str, program: Program) -> tuple[ErrorKind, str] | None:
    """Return the limit that an error of Monty's own stands for; None for any other error."""
    limits = program.limits
    if name == "TimeoutError" and "time limit exceeded" in message:
        return "time", computed_too_long(limits).message
    if name == "MemoryError" and "memory limit" in message:
        return "memory", out_of_memory(limits).message
    if name == "RuntimeError" and "suspension limit" in message:
        return "calls", "the program asked the host too often. Make fewer calls."
    return None


def _explained(name: str, message: str, program: Program) -> str:
    """Return the message, and what to write instead where that is known."""
    if name == "NameError" and (undefined := _UNDEFINED.search(message)):
        word = undefined.group(1)
        if hasattr(builtins, word):
            return f"{message}. `{word}` is not available in this Python."
        near = closest(word, program.tools)
        return f"{message}. {near if near.startswith('Did') else 'It is neither a name of the program nor a tool.'}"
    if name == "TypeError" and (misfit := _MISFIT.match(message)) and misfit[1] in program.signatures:
        return f"{message.rstrip('.')}. Call it as `{program.signatures[misfit[1]]}`."
    if name == "AttributeError" and (lacking := _NO_ATTRIBUTE.search(message)):
        return f"{message}{_likely_attribute(lacking[1], lacking[2])}"
    if name == "TypeError" and (dated := hint_for_operation(message)):
        return f"{message}. {dated}"
    if _NO_SUSPEND in message:
        return (
            "a tool cannot be called from inside map, filter, a key function or a special method such as __iter__. "
            "Call it in a loop or a comprehension first, and use the results."
        )
    if any(words in message for words in _AWAITABLE):
        return (
            f"{message}. A tool call gives its result at once unless it is awaited where it is made: write "
            "`x = await tool(...)`, or `await asyncio.gather(tool(a), tool(b))`."
        )
    if _ONE_TEXT in message:
        return "an exception takes one text here: write `raise ValueError(f'...')`."
    return message


def _likely_attribute(kind: str, name: str) -> str:
    if kind == "dict":
        return f". Its keys are read as `value['{name}']`."
    if kind == "str" and (dated := hint_for_attribute(name)):
        return f". {dated}"
    known = [attribute for attribute in dir(getattr(builtins, kind, None)) if not attribute.startswith("_")]
    near = closest(name, known)
    return f". {near}" if near.startswith("Did") else ""


def _traceback(frames: list[Frame], program: Program, last: str) -> str:
    lines = program.code.splitlines()
    parts = ["Traceback (most recent call last):"]
    repeated = 0
    for before, frame in zip([None, *frames], frames, strict=False):
        same = before is not None and (before.line, before.filename) == (frame.line, frame.filename)
        repeated = repeated + 1 if same else 0
        if repeated == _REPEATED:
            parts.append("  [the same line again and again]")
        if repeated < _REPEATED:
            inner = frame.filename == "<string>"  # inside the program's own exec or eval
            place = "<string>" if inner else program.name
            shown = [f'  File "{place}", line {frame.line}, in {frame.function_name or "<module>"}']
            if not inner and 0 < frame.line <= len(lines):
                shown.append(f"    {lines[frame.line - 1].strip():.200}")
            parts += shown
    return "\n".join([*parts, last])
