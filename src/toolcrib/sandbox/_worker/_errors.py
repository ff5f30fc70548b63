"""Errors of a program, for a model: its own frames and lines, and a hint what to write instead.

For a hint nothing of the program's is run: names are looked up, and items of real dicts and lists.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ._stubs import UnawaitedCall, raised_by
from .date_hints import hint_for_attribute, hint_for_operation
from .imports import MODULES

_MESSAGE_CHARS = 4_000
_LINE_CHARS = 200
_FRAMES_SHOWN = 40
_REPEATS_SHOWN = 3  # of one line in a row
_NAMES_SHOWN = 12  # names or keys
_KEY_CHARS = 60
_CLASS_NAME = type.__dict__["__name__"]  # a class of the program's may have a property of that name
_NOTHING = object()
_OF_NETWORK = frozenset({"aiohttp", "fsspec", "ftplib", "http", "requests", "socket", "ssl", "urllib", "urllib3"})
_STREAM = "The values of a streaming tool come one by one: write `list(...)` around the call first."


def failure(
    error: BaseException, sources: Sources, file: str, name: str, signatures: Mapping[str, str]
) -> dict[str, Any]:
    """Return the error of a program as a frame's field.

    Args:
        error: The exception.
        sources: The texts of the programs that ran here.
        file: The name that the code of this program has.
        name: The program's file name for the model.
        signatures: How each tool is called.
    """
    frames = list(sources.frames(BaseException.__dict__["__traceback__"].__get__(error)))
    kind = _CLASS_NAME.__get__(type(error))[:_LINE_CHARS]
    message = _cut(explained(error, frames[-1] if frames else None, signatures))
    last = f"{kind}: {message}" if message else kind
    tool = raised_by(error)
    if tool is not None:
        message = f"{message} (raised by the tool `{tool}`)"
    return {
        "kind": "memory" if isinstance(error, MemoryError) and tool is None else "exception",
        "type": kind,
        "message": message,
        "line": next((frame.line for frame in reversed(frames) if frame.file == file), 0),
        "traceback": "\n".join(["Traceback (most recent call last):", *_shown(frames, file, name), last]),
    }


def unreadable() -> dict[str, Any]:
    """Return the field for an error that cannot be looked at."""
    message = "the program raised an error that could not be read"
    return {"kind": "exception", "type": "Exception", "message": message, "line": 0, "traceback": ""}


def syntax_failure(error: BaseException, sources: Sources, file: str, name: str) -> dict[str, Any]:
    """Return the field for code that does not parse."""
    line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
    message = _cut((error.msg if isinstance(error, SyntaxError) else str(error)) or "the code is nested too deep")
    shown = [f'  File "{name}", line {line}', f"    {sources.line(file, line).strip()[:_LINE_CHARS]}"] if line else []
    kind = type(error).__name__ if isinstance(error, SyntaxError) else "SyntaxError"
    text = "\n".join([*shown, f"{kind}: {message}"])
    return {"kind": "syntax", "type": kind, "message": message, "line": line, "traceback": text}


def _shown(frames: list[ProgramFrame], file: str, name: str) -> Iterator[str]:
    """Yield the lines of a traceback: the last of many frames, and a few of equal ones."""
    if len(frames) > _FRAMES_SHOWN:
        head, skipped = frames[:1], len(frames) - _FRAMES_SHOWN
        yield from _frame_lines(head, file, name)
        yield f"  [{skipped} frame{'' if skipped == 1 else 's'} left out]"
        frames = frames[1 + skipped :]
    yield from _frame_lines(frames, file, name)


def _frame_lines(frames: list[ProgramFrame], file: str, name: str) -> Iterator[str]:
    before: tuple[str, int] | None = None
    repeated = 0
    for frame in frames:
        repeated = repeated + 1 if (frame.file, frame.line) == before else 0
        before = (frame.file, frame.line)
        if repeated == _REPEATS_SHOWN:
            yield "  [the same line again and again]"
        if repeated >= _REPEATS_SHOWN:
            continue
        shown_file = name if frame.file == file else frame.file
        yield f'  File "{shown_file}", line {frame.line}, in {frame.raw.f_code.co_name[:_LINE_CHARS]}'
        text = frame.text.strip()[:_LINE_CHARS]
        if text:
            yield f"    {text}"


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARS else f"{text[:_MESSAGE_CHARS]} ..."


# --- the program's lines and frames -----------------------------------------------------------------------------------


class Sources:
    """The texts of the programs that ran here, by the name of their code."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._last: dict[str, int] = {}

    def add(self, name: str, code: str) -> str:
        """Keep a program's text; return the name to compile it under, which is its own unless that is taken."""
        file, number = name, self._last.get(name, 1)
        while file in self._lines:
            number += 1
            file = f"{name} ({number})"
        self._last[name] = number
        self._lines[file] = code.splitlines()
        return file

    def line(self, name: str, number: int) -> str:
        """Return a line of a program, empty for one that it does not have."""
        lines = self._lines.get(name, [])
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def frames(self, trace: types.TracebackType | None) -> Iterator[ProgramFrame]:
        """Yield the frames of programs that an error passed, outermost first; code of their `exec` counts."""
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if name in self._lines or name == "<string>":
                number = trace.tb_lineno or 0
                yield ProgramFrame(trace.tb_frame, name, number, self.line(name, number), trace.tb_lasti)
            trace = trace.tb_next


@dataclass(frozen=True, slots=True)
class ProgramFrame:
    """A frame of a program, and the place in it where an error passed.

    Attributes:
        file: The name of its code.
        line: Counted from 1.
        text: That line.
        instruction: The offset of the bytecode that raised.
    """

    raw: types.FrameType
    file: str
    line: int
    text: str
    instruction: int

    @property
    def expression(self) -> str:
        """The part of the line that failed; empty when it is not on one line."""
        positions = itertools.islice(self.raw.f_code.co_positions(), self.instruction // 2, None)
        line, last, start, end = next(positions, (None, None, None, None))
        if line != self.line or last != line or start is None or end is None:
            return ""
        return self.text.encode()[start:end].decode(errors="reframe")


# --- hints ------------------------------------------------------------------------------------------------------------


def explained(error: BaseException, frame: ProgramFrame | None, signatures: Mapping[str, str]) -> str:
    """Return the message of an error, and a hint."""
    text = _message_of(error)
    try:
        hint = _hint(error, text, frame, signatures)
    except BaseException:  # names and values of the program's: a failure of theirs must not hide the error
        return text
    if not hint:
        return text
    return f"{text.rstrip('.')}. {hint}" if text else hint


def _message_of(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except BaseException:  # the program's own class, which may raise anything
        return "its message could not be read"


def _hint(error: BaseException, text: str, frame: ProgramFrame | None, signatures: Mapping[str, str]) -> str:
    tool = raised_by(error)
    if tool is not None:
        signature = signatures.get(tool, "")
        return f"Call it as `{signature}`." if isinstance(error, TypeError) and signature not in text else ""
    match error:
        case BaseExceptionGroup():
            inner = [f"{type(part).__name__}: {_message_of(part)}" for part in error.exceptions[:_NAMES_SHOWN]]
            return "In it: " + "; ".join(inner)
        case NameError(name=str(name)):
            return _of_name(name, frame, signatures)
        case AttributeError(name=str(name), obj=holder):
            return _of_attribute(name, holder)
        case KeyError() if frame is not None:
            holder = _holder(frame)
            if not isinstance(holder, dict):
                return ""
            return f"The dict has {_keys(cast('dict[Any, Any]', holder))}."
        case IndexError() if frame is not None:
            holder = _holder(frame)
            if not isinstance(holder, list | tuple | str):
                return ""
            size = len(cast("list[Any]", holder))
            kind = type(cast("object", holder)).__name__
            return f"The {kind} has {size} item{'' if size == 1 else 's'}." if size else f"The {kind} is empty."
        case ModuleNotFoundError(name=str(name)) if text.startswith("No module"):  # a package asked for it
            return "A program has no network: have a tool fetch it." if name.partition(".")[0] in _OF_NETWORK else ""
        case TypeError():
            return _STREAM if "ValueStream" in text else hint_for_operation(text)
        case SystemExit() | KeyboardInterrupt():
            return "A program runs to its end and cannot end the process: leave `exit` out."
        case _:
            return ""


def _of_name(name: str, frame: ProgramFrame | None, signatures: Mapping[str, str]) -> str:
    if name in MODULES:
        return f"Write `import {name}` first."
    known = set(signatures)
    if frame is not None:
        known |= {*frame.raw.f_locals, *frame.raw.f_globals}
    return _near(name, known) or "It is neither a name of the program nor a tool."


def _of_attribute(name: str, holder: Any) -> str:
    if isinstance(holder, UnawaitedCall):
        return f"The call is not awaited yet: write `(await {holder.__name__}(...)).{name}`."
    if type(holder) is dict:
        keys = cast("dict[Any, Any]", holder)
        if name in keys:
            return f'It is a dict: write `["{name}"]`.'
        return f"It is a dict, with {_keys(keys)}."
    dated = hint_for_attribute(name) if type(holder) is str else ""
    return dated or _near(name, [known for known in dir(holder) if not known.startswith("_")])


def _keys(holder: dict[Any, Any]) -> str:
    if not holder:
        return "no keys"
    shown = [f"{key!r:.{_KEY_CHARS}}" for key, _ in zip(holder, range(_NAMES_SHOWN), strict=False)]
    more = f" and {len(holder) - _NAMES_SHOWN} more" if len(holder) > _NAMES_SHOWN else ""
    return f"the keys {', '.join(shown)}{more}"


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(f'`{match}`' for match in near)}?" if near else ""


# --- the value that an expression was about to look into --------------------------------------------------------------


def _holder(frame: ProgramFrame) -> Any:
    try:
        failed = ast.parse(frame.expression, mode="eval").body
    except SyntaxError:  # it goes over several lines, or is none
        return None
    match failed:
        case ast.Subscript(value=holder) | ast.Call(func=ast.Attribute(value=holder)):
            return _value(holder, frame)
        case _:
            return None


def _value(expression: ast.expr, frame: ProgramFrame) -> Any:
    """Return the value of an expression of names, constants and items; `_NOTHING` for any other."""
    match expression:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return frame.raw.f_locals.get(name, frame.raw.f_globals.get(name, _NOTHING))
        case ast.Subscript(value=holder, slice=part):
            return _item(_value(holder, frame), _value(part, frame))
        case _:
            return _NOTHING


def _item(holder: Any, key: Any) -> Any:
    kind = cast("type[Any]", type(holder))
    if kind is dict and type(key) in (str, int):
        return holder.get(key, _NOTHING)
    if kind in (list, tuple) and type(key) is int:
        return holder[key] if -len(holder) <= key < len(holder) else _NOTHING
    return _NOTHING
