"""What stopped a program, for a model: its own lines and nothing of ours."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from ._hints import explained
from ._stubs import raised_by

__all__ = ["Sources", "failure", "syntax_failure"]

_MESSAGE = 4_000  # characters
_LINE = 200
_FRAMES = 40
_REPEATED = 3  # times that one line is shown in a row


class Sources:
    """The texts of the programs that ran here, by the name their code has."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, code: str) -> str:
        """Keep a program's text; return the name to compile it under, which is its own unless that is taken."""
        own, number = name, 1
        while own in self._lines:
            number += 1
            own = f"{name} ({number})"
        self._lines[own] = code.splitlines()
        return own

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def line(self, name: str, number: int) -> str:
        """Return a line of a program, without its indentation."""
        lines = self._lines.get(name, [])
        return lines[number - 1].strip()[:_LINE] if 0 < number <= len(lines) else ""


def failure(error: BaseException, sources: Sources, own: str, name: str, signatures: dict[str, str]) -> dict[str, Any]:
    """Return what to say of an error.

    Args:
        own: The name that the code of this program has.
        name: What the program is called.
        signatures: How each tool is called.
    """
    frames = list(_program_frames(error.__traceback__, sources))
    kind = type(error).__name__
    message = _cut(explained(error, frames[-1][0] if frames else None, signatures))
    last = f"{kind}: {message}" if message else kind
    tool = raised_by(error)
    if tool is not None:
        message = f"{message} (raised by the tool `{tool}`)"
    return {
        "kind": "memory" if isinstance(error, MemoryError) else "exception",
        "type": kind,
        "message": message,
        "line": next((line for frame, line in reversed(frames) if frame.f_code.co_filename == own), 0),
        "traceback": "\n".join(["Traceback (most recent call last):", *_shown(frames, sources, own, name), last]),
    }


def syntax_failure(error: BaseException, sources: Sources, own: str, name: str) -> dict[str, Any]:
    """Return what to say of code that is no program."""
    line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
    message = _cut((error.msg if isinstance(error, SyntaxError) else str(error)) or "the code is nested too deep")
    shown = [f'  File "{name}", line {line}', f"    {sources.line(own, line)}"] if line else []
    kind = type(error).__name__ if isinstance(error, SyntaxError) else "SyntaxError"
    text = "\n".join([*shown, f"{kind}: {message}"])
    return {"kind": "syntax", "type": kind, "message": message, "line": line, "traceback": text}


def _program_frames(trace: types.TracebackType | None, sources: Sources) -> Iterator[tuple[types.FrameType, int]]:
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in sources or trace.tb_frame.f_code.co_filename == "<string>":
            yield trace.tb_frame, trace.tb_lineno or 0
        trace = trace.tb_next


def _shown(frames: list[tuple[types.FrameType, int]], sources: Sources, own: str, name: str) -> Iterator[str]:
    """Yield the lines of a traceback; of many frames the first and the last."""
    left_out = len(frames) - _FRAMES
    before: tuple[str, int, str] | None = None
    repeated = 0
    for index, (frame, line) in enumerate(frames):
        if left_out > 0 and _FRAMES // 2 <= index < _FRAMES // 2 + left_out:
            if index == _FRAMES // 2:
                yield f"  [{left_out} frames left out]"
            before = None
            continue
        code = frame.f_code
        place = (code.co_filename, line, code.co_name)
        repeated = repeated + 1 if place == before else 0
        before = place
        if repeated >= _REPEATED:
            continue
        yield f'  File "{name if code.co_filename == own else code.co_filename}", line {line}, in {code.co_qualname}'
        text = sources.line(code.co_filename, line)
        if text:
            yield f"    {text}"


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."
