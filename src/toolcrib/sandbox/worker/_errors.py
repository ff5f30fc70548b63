"""What stopped a program, for a model: its own lines and nothing of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._error_location import Place, Sources
from ._hints import explained
from ._stubs import raised_by

__all__ = ["failure", "syntax_failure", "unreadable"]

_MESSAGE = 4_000  # characters
_LINE = 200
_FRAMES = 40
_NAME = type.__dict__["__name__"]  # what a class of the program's says of itself may be anything
_REPEATED = 3  # times that one line is shown in a row


def failure(
    error: BaseException, sources: Sources, own: str, name: str, signatures: Mapping[str, str]
) -> dict[str, Any]:
    """Return what to say of an error.

    Args:
        own: The name that the code of this program has.
        name: What the program is called.
        signatures: How each tool is called.
    """
    places = list(sources.places(BaseException.__dict__["__traceback__"].__get__(error)))
    kind = _NAME.__get__(type(error))[:_LINE]
    message = _cut(explained(error, places[-1] if places else None, signatures))
    last = f"{kind}: {message}" if message else kind
    tool = raised_by(error)
    if tool is not None:
        message = f"{message} (raised by the tool `{tool}`)"
    return {
        "kind": "memory" if isinstance(error, MemoryError) and tool is None else "exception",
        "type": kind,
        "message": message,
        "line": next((place.line for place in reversed(places) if place.file == own), 0),
        "traceback": "\n".join(["Traceback (most recent call last):", *_shown(places, own, name), last]),
    }


def unreadable() -> dict[str, Any]:
    """Return what to say of an error that resists being looked at."""
    message = "the program raised an error that could not be read"
    return {"kind": "exception", "type": "Exception", "message": message, "line": 0, "traceback": ""}


def syntax_failure(error: BaseException, sources: Sources, own: str, name: str) -> dict[str, Any]:
    """Return what to say of code that is no program."""
    line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
    message = _cut((error.msg if isinstance(error, SyntaxError) else str(error)) or "the code is nested too deep")
    shown = [f'  File "{name}", line {line}', f"    {sources.line(own, line).strip()[:_LINE]}"] if line else []
    kind = type(error).__name__ if isinstance(error, SyntaxError) else "SyntaxError"
    text = "\n".join([*shown, f"{kind}: {message}"])
    return {"kind": "syntax", "type": kind, "message": message, "line": line, "traceback": text}


def _shown(places: list[Place], own: str, name: str) -> Iterator[str]:
    """Yield the lines of a traceback: of many frames the last, and of one line again and again a few."""
    if len(places) > _FRAMES:
        head, skipped = places[:1], len(places) - _FRAMES
        yield from _frames(head, own, name)
        yield f"  [{skipped} frames left out]"
        places = places[1 + skipped :]
    yield from _frames(places, own, name)


def _frames(places: list[Place], own: str, name: str) -> Iterator[str]:
    before: tuple[str, int] | None = None
    repeated = 0
    for place in places:
        repeated = repeated + 1 if (place.file, place.line) == before else 0
        before = (place.file, place.line)
        if repeated == _REPEATED:
            yield "  [the same line again and again]"
        if repeated >= _REPEATED:
            continue
        file = name if place.file == own else place.file
        yield f'  File "{file}", line {place.line}, in {place.frame.f_code.co_name[:_LINE]}'
        text = place.text.strip()[:_LINE]
        if text:
            yield f"    {text}"


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."
