"""What an error's message says besides, so that a model knows what to write instead."""

from __future__ import annotations

import types

__all__ = ["explained"]


def explained(error: BaseException, frame: types.FrameType | None, signatures: dict[str, str]) -> str:
    """Return the message of an error, with what helps to mend it."""
    return text_of(error)


def text_of(error: BaseException) -> str:
    """Return an error as text, whatever its class does."""
    try:
        return str(error)
    except Exception:  # the program's own class
        return "its message could not be read"
