"""Secret values of a call, hidden in every text that the call leaves: errors, reasons, log lines, events."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, quote_plus

from toolcrib._passwords import REDACTED
from toolcrib.errors import (
    CallStateError,
    LockHeldError,
    MissingProvided,
    ModelRetry,
    NotCallable,
    ToolCancelled,
    ToolTimeoutError,
    message_of,
)

__all__ = ["NOTHING_HIDDEN", "Hiding"]

E = TypeVar("E", bound=BaseException)

_SHORTEST: Final = 4  # characters of a value that is hidden
_ANYWHERE: Final = 8  # characters from which on it is hidden inside of a word or a number, too
_LONG: Final = 16  # characters from which on its parts are hidden, too
_PART: Final = 12  # characters of such a part
_BASE64: Final = ";base64,"
_OWN_TEXT: Final = (CallStateError, LockHeldError, MissingProvided, NotCallable, ToolCancelled, ToolTimeoutError)
_DEEPEST: Final = 20  # levels of a value in an exception
_MOST_ERRORS: Final = 200  # of a chain; what caused them before is left out


class Hiding:
    """What hides the secret values of one call in texts.

    A value of at least 8 characters is hidden wherever it stands, and of one of at least 16 each part of 12. A value of
    4 to 7 characters is hidden where it stands by itself, as a word or a number; a shorter one is not.

    Args:
        values: The secret values, numbers as their texts.
    """

    def __init__(self, values: Collection[str] = ()) -> None:
        self._values = frozenset(value.strip() for value in values if len(value.strip()) >= _SHORTEST)

    def __bool__(self) -> bool:
        return bool(self._values)

    def hide(self, text: str) -> str:
        """Return a text without the secret values."""
        if not self._values:
            return text
        text = self._pattern.sub(REDACTED, text)
        return _without_parts(text, self._parts) if self._parts else text

    def hide_in(self, shapes: Any) -> Any:
        """Return JSON shapes in which no text, number or key is or has a secret value; other objects as they are."""
        if not self._values:
            return shapes
        match shapes:
            case str():
                return self.hide(shapes)
            case Mapping():
                named = cast("Mapping[Any, Any]", shapes).items()
                return {self.hide_in(key): self.hide_in(value) for key, value in named}
            case list():
                return [self.hide_in(value) for value in cast("list[Any]", shapes)]
            case tuple():
                return tuple(self.hide_in(value) for value in cast("tuple[Any, ...]", shapes))
            case int() | float() if not isinstance(shapes, bool):
                return shapes if self.hide(str(shapes)) == str(shapes) else REDACTED
            case _:
                return shapes

    def hide_error(self, error: E) -> E:
        """Hide the secret values in the text of an exception, its notes, its causes and its group, in place.

        Returns:
            The exception; or another one that reads as it does, where its class builds a text that quotes a secret.
        """
        return cast("E", self._hidden_error(error, {})) if self._values else error

    # --- inside

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        forms = {form for value in self._values for form in _forms(value)}
        return re.compile("|".join(map(_guarded, sorted(forms, key=len, reverse=True))), re.IGNORECASE)

    @cached_property
    def _parts(self) -> frozenset[str]:
        long = (form for value in self._values if len(value) >= _LONG for form in _forms(value))
        return frozenset(form[start : start + _PART] for form in long for start in range(len(form) - _PART + 1))

    def _hidden_error(self, error: BaseException, known: dict[int, BaseException]) -> BaseException:
        """Return the exception after its text is hidden; `known` has those that were looked at, by identity."""
        if id(error) in known:
            return known[id(error)]
        known[id(error)] = error
        cause, context, suppressed = error.__cause__, error.__context__, error.__suppress_context__
        is_group = isinstance(error, BaseExceptionGroup)
        whole = self._hidden_group(cast("BaseExceptionGroup[Any]", error), known) if is_group else error
        known[id(error)] = hidden = self._with_hidden_text(cast("BaseException", whole))
        known[id(hidden)] = hidden
        if cause is not None:
            hidden.__cause__ = self._hidden_error(cause, known) if len(known) < _MOST_ERRORS else None
        if context is not None:
            hidden.__context__ = self._hidden_error(context, known) if len(known) < _MOST_ERRORS else None
        hidden.__suppress_context__ = suppressed
        return hidden

    def _with_hidden_text(self, error: BaseException) -> BaseException:
        """Return an exception after its text is hidden, where it quotes a secret."""
        if isinstance(error, _OWN_TEXT) or not self._tells(error):
            return error
        for name in ("args", "__notes__", *vars(error)):
            self._hide_attribute(error, name)
        return _stand_in(self.hide(message_of(error)), error) if self._tells(error) else error

    def _hide_attribute(self, error: BaseException, name: str) -> None:
        try:
            value = getattr(error, name, None)
            hidden = self._hidden_part(value, 0)
            if hidden is not value:
                setattr(error, name, hidden)
        except Exception:  # the class of the exception is the user's, and may refuse it
            return

    def _hidden_part(self, value: Any, depth: int) -> Any:
        """Return a part of an exception without secrets: the same object where it has none."""
        hidden: Any = value
        kind: Any = cast("Any", type(value))
        if depth > _DEEPEST:
            return REDACTED
        if issubclass(kind, str | int | float):
            hidden = self.hide_in(value)
        elif kind is dict:
            hidden = {self.hide_in(key): self._hidden_part(part, depth + 1) for key, part in value.items()}
        elif kind in (list, tuple):
            inner = [self._hidden_part(part, depth + 1) for part in cast("list[Any]", value)]
            if not all(map(_is, inner, value)):
                hidden = list(inner) if kind is list else tuple(inner)
        elif not isinstance(value, BaseException | type | None):
            hidden = self._hidden_object(value, depth)
        return hidden if hidden is value or not _equal(hidden, value) else value

    def _hidden_object(self, value: Any, depth: int) -> Any:
        """Return an object of any type with its attributes hidden; its text where that still quotes a secret."""
        try:
            if not any(map(self._changes, (str(value), repr(value)))):
                return value
            hidden = copy(value)
            names: list[str] = [part.name for part in fields(value)] if is_dataclass(value) else [*vars(value)]
            for name in names:
                object.__setattr__(hidden, name, self._hidden_part(getattr(value, name), depth + 1))
            return self.hide(str(value)) if any(map(self._changes, (str(hidden), repr(hidden)))) else hidden
        except Exception:  # code of the value's author; what the exception says with it is looked at once more
            return value

    def _hidden_group(self, group: BaseExceptionGroup[Any], known: dict[int, BaseException]) -> Any:
        members = [self._hidden_error(member, known) for member in group.exceptions]
        if not self._changes(group.message) and all(map(_is, members, group.exceptions)):
            return group
        kind: Any = ExceptionGroup if isinstance(group, Exception) else BaseExceptionGroup
        hidden = kind(self.hide(group.message), members).with_traceback(group.__traceback__)
        for note in getattr(group, "__notes__", ()):
            hidden.add_note(note)
        return hidden

    def _changes(self, text: str) -> bool:
        return self.hide(text) != text

    def _tells(self, error: BaseException) -> bool:
        """Return whether an exception still quotes a secret, in what a log or a traceback would have of it."""
        try:
            lines = "".join(traceback.format_exception_only(error))
            shown = repr(error)
        except Exception:  # code of the exception's author
            return True
        return any(map(self._changes, (message_of(error), lines, shown)))


NOTHING_HIDDEN: Final = Hiding()
"""What hides nothing: of a call without secrets."""


def _is(one: object, other: object) -> bool:
    return one is other


def _equal(one: object, other: object) -> bool:
    try:
        return one is other or (type(one) is type(other) and bool(one == other))
    except Exception:  # code of the value's author
        return False


def _stand_in(message: str, error: BaseException) -> Exception:
    """Return an exception that reads as one whose class builds its own text."""
    kind = ModelRetry if isinstance(error, ModelRetry) else type(type(error).__name__, (Exception,), {})
    return kind(message).with_traceback(error.__traceback__)


def _forms(value: str) -> set[str]:
    """Return how a value may stand in a text: as it is, and as Python, JSON and an address write it."""
    forms = {value, repr(value)[1:-1], ascii(value)[1:-1], json.dumps(value)[1:-1], quote(value, ""), quote_plus(value)}
    if _BASE64 in value:  # bytes that are not text
        forms.add(value.partition(_BASE64)[2])
    return forms


def _guarded(form: str) -> str:
    """Return a pattern for a form of a value; of a short one, where no letter or digit of its kind is beside it."""
    pattern = re.escape(form)
    return pattern if len(form) >= _ANYWHERE else f"{_beside(form[0], '<!')}{pattern}{_beside(form[-1], '!')}"


def _beside(edge: str, look: str) -> str:
    kind = r"\d" if edge.isdigit() else r"[^\W\d_]" if edge.isalpha() else ""
    return f"(?{look}{kind})" if kind else ""


def _without_parts(text: str, parts: frozenset[str]) -> str:
    """Return a text in which each run of characters that is a part of a long value is hidden."""
    kept, start, position = list[str](), 0, 0
    while position <= len(text) - _PART:
        if text[position : position + _PART] not in parts:
            position += 1
            continue
        end = position + _PART
        while end < len(text) and text[end - _PART + 1 : end + 1] in parts:
            end += 1
        kept += [text[start:position], REDACTED]
        start = position = end
    return "".join([*kept, text[start:]])
