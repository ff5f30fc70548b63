"""Secret values of a call, hidden in every text that the call leaves: errors, reasons, log lines, events."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar, cast

from toolcrib._cut import cut_note
from toolcrib._numbers import count_text
from toolcrib._passwords import REDACTED
from toolcrib.calls._secret_forms import MARGIN, SHORTEST, SecretForms
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

E = TypeVar("E", bound=BaseException)

_LONGEST: Final = 200_000  # characters of a text that is looked through as a whole
_MOST_OF_IT: Final = 70_000  # of a longer one, which is cut: this is looked for while nothing else runs
_OWN_TEXT: Final = (CallStateError, LockHeldError, MissingProvided, NotCallable, ToolCancelled, ToolTimeoutError)
_DEEPEST: Final = 20  # levels of a value in an exception
_MOST_ERRORS: Final = 100  # of a chain or a group; what caused them before, and further members, are left out


class Hiding:
    """The secret values of one call, which it replaces in texts.

    A value of at least 8 characters is hidden wherever it stands, and of one of at least 16 each part of 12. A value of
    4 to 7 characters is hidden where it stands by itself, as a word or a number; a shorter one is not.

    Args:
        values: The secret values, numbers as their texts.
    """

    def __init__(self, values: Collection[str] = ()) -> None:
        self._values = frozenset(value.strip() for value in values if len(value.strip()) >= SHORTEST)
        self._found_forms: SecretForms | None = None

    def __bool__(self) -> bool:
        return bool(self._values)

    def hide(self, text: str, limit: int | None = None) -> str:
        """Return a text without the secret values, cut to a number of characters as `cut` does, or where it is huge."""
        if limit is None and len(text) > _LONGEST and self._values:
            limit = _MOST_OF_IT
        if limit is None or len(text) <= limit:
            return self._between(text, 0, len(text))
        tail = limit // 3
        head = self._between(text, 0, limit - tail)
        return f"{head}{cut_note(text, limit)}{self._between(text, len(text) - tail, len(text))}"

    def hide_in(self, shapes: Any, limit: int | None = None) -> Any:
        """Return JSON shapes in which no text, number or key is or has a secret value; other objects as they are.

        Args:
            shapes: The shapes.
            limit: Where they are a text, its most characters, as for `hide`.
        """
        match shapes:
            case str():
                return self.hide(shapes, limit)
            case _ if not self._values:
                return shapes
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

    def _between(self, text: str, start: int, end: int) -> str:
        """Return a part of a text without the secret values, also those that reach into it."""
        if not self._values:
            return text[start:end]
        if self._found_forms is None:
            self._found_forms = SecretForms(self._values)
        first, parts, position = max(0, start - MARGIN), list[str](), start
        for begins, ends in self._found_forms.spans(text[first : end + MARGIN]):
            if first + ends > start and first + begins < end:
                parts += [text[position : first + begins], REDACTED]
                position = min(first + ends, end)
        return "".join([*parts, text[position:end]])

    def _hidden_error(self, error: BaseException, known: dict[int, BaseException]) -> BaseException:
        """Return the exception after its text is hidden; `known` has those that were looked at, by identity."""
        if id(error) in known:
            return known[id(error)]
        known[id(error)] = error
        cause, context, suppressed = error.__cause__, error.__context__, error.__suppress_context__
        is_group = isinstance(error, BaseExceptionGroup)
        outer = self._hidden_group(cast("BaseExceptionGroup[Any]", error), known) if is_group else error
        known[id(error)] = hidden = self._with_hidden_text(cast("BaseException", outer))
        known[id(hidden)] = hidden
        if cause is not None:
            hidden.__cause__ = self._hidden_error(cause, known) if len(known) < _MOST_ERRORS else None
        if context is not None:
            hidden.__context__ = self._hidden_error(context, known) if len(known) < _MOST_ERRORS else None
        hidden.__suppress_context__ = suppressed
        return hidden

    def _with_hidden_text(self, error: BaseException) -> BaseException:
        """Return an exception after its text is hidden, where it quotes a secret."""
        if type(error) in _OWN_TEXT and not getattr(error, "__notes__", None):
            return error
        for name in ("args", "__notes__", *vars(error)):
            self._hide_attribute(error, name)
        return self._stand_in(error) if self._tells(error) else error

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
        members = [
            self._hidden_error(member, known)
            for member in group.exceptions
            if id(member) in known or len(known) < _MOST_ERRORS
        ]
        if left_out := len(group.exceptions) - len(members):
            members.append(Exception(f"{count_text(left_out, 'more error')} left out"))
        if not self._changes(group.message) and not left_out and all(map(_is, members, group.exceptions)):
            return group
        kind: Any = ExceptionGroup if isinstance(group, Exception) else BaseExceptionGroup
        hidden = kind(self.hide(group.message), members).with_traceback(group.__traceback__)
        for note in getattr(group, "__notes__", ()):
            hidden.add_note(note)
        return hidden

    def _stand_in(self, error: BaseException) -> Exception:
        """Return an exception that reads as one whose class builds its own text."""
        named = type(self.hide(type(error).__name__), (Exception,), {})
        kind = ModelRetry if isinstance(error, ModelRetry) else named
        return kind(self.hide(message_of(error))).with_traceback(error.__traceback__)

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
"""The hiding of a call without secrets, which replaces nothing."""


def _is(value: object, other: object) -> bool:
    return value is other


def _equal(value: object, other: object) -> bool:
    try:
        return value is other or (type(value) is type(other) and bool(value == other))
    except Exception:  # code of the value's author
        return False
