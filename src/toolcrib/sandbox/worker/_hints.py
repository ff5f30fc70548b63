"""What an error's message says besides, so that a model knows what to write instead.

Nothing of the program's is run for it: names are looked up, and items of real dicts and lists.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ._date_hints import hint_for_attribute, hint_for_operation
from ._error_location import Place
from ._imports import MODULES
from ._stubs import PendingCall, raised_by

__all__ = ["explained"]

_SHOWN = 12  # names or keys
_KEY = 60  # characters
_NOTHING = object()
_STREAM = "The values of a streaming tool come one by one: write `list(...)` around the call first."


def explained(error: BaseException, place: Place | None, signatures: Mapping[str, str]) -> str:
    """Return the message of an error, with what helps to mend it."""
    text = _text(error)
    try:
        hint = _hint(error, text, place, signatures)
    except BaseException:  # names and values of the program's: whatever they do, the error itself is told
        return text
    if not hint:
        return text
    return f"{text.rstrip('.')}. {hint}" if text else hint


def _text(error: BaseException) -> str:
    try:
        return str.__str__(str(error))
    except BaseException:  # the program's own class, which may raise anything
        return "its message could not be read"


def _hint(error: BaseException, text: str, place: Place | None, signatures: Mapping[str, str]) -> str:
    tool = raised_by(error)
    if tool is not None:
        signature = signatures.get(tool, "")
        return f"Call it as `{signature}`." if isinstance(error, TypeError) and signature not in text else ""
    match error:
        case BaseExceptionGroup():
            return _of_group(error)
        case NameError(name=str(name)):
            return _of_name(name, place, signatures)
        case AttributeError(name=str(name), obj=holder):
            return _of_attribute(name, holder)
        case KeyError() if place is not None:
            return _of_key(_holder(place))
        case IndexError() if place is not None:
            return _of_index(_holder(place))
        case TypeError():
            return _STREAM if "ValueStream" in text else hint_for_operation(text)
        case SystemExit() | KeyboardInterrupt():
            return "A program runs to its end and cannot end the process: leave `exit` out."
        case _:
            return ""


def _of_group(group: BaseExceptionGroup[BaseException]) -> str:
    inner = [f"{type(error).__name__}: {_text(error)}" for error in group.exceptions[:_SHOWN]]
    return "In it: " + "; ".join(inner)


def _of_name(name: str, place: Place | None, signatures: Mapping[str, str]) -> str:
    if name in MODULES:
        return f"Write `import {name}` first."
    known = set(signatures)
    if place is not None:
        known |= {*place.frame.f_locals, *place.frame.f_globals}
    return _near(name, known) or "It is neither a name of the program nor a tool."


def _of_attribute(name: str, holder: Any) -> str:
    if isinstance(holder, PendingCall):
        return f"The call is not awaited yet: write `(await {holder.__name__}(...)).{name}`."
    if type(holder) is dict:
        keys = cast("dict[Any, Any]", holder)
        if name in keys:
            return f'It is a dict: write `["{name}"]`.'
        return f"It is a dict, with {_keys(keys)}."
    dated = hint_for_attribute(name) if type(holder) is str else ""
    return dated or _near(name, [known for known in dir(holder) if not known.startswith("_")])


def _of_key(holder: Any) -> str:
    if not isinstance(holder, dict):
        return ""
    return f"The dict has {_keys(cast('dict[Any, Any]', holder))}."


def _of_index(holder: Any) -> str:
    if not isinstance(holder, list | tuple | str):
        return ""
    size = len(cast("list[Any]", holder))
    kind = type(cast("object", holder)).__name__
    return f"The {kind} has {size} items." if size else f"The {kind} is empty."


def _keys(holder: dict[Any, Any]) -> str:
    if not holder:
        return "no keys"
    shown = [f"{key!r:.{_KEY}}" for key, _ in zip(holder, range(_SHOWN), strict=False)]
    more = f" and {len(holder) - _SHOWN} more" if len(holder) > _SHOWN else ""
    return f"the keys {', '.join(shown)}{more}"


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""


# --- the value that an expression was about to look into --------------------------------------------------------------


def _holder(place: Place) -> Any:
    try:
        failed = ast.parse(place.expression, mode="eval").body
    except SyntaxError:  # it goes over several lines, or is none
        return None
    match failed:
        case ast.Subscript(value=held) | ast.Call(func=ast.Attribute(value=held)):
            return _value(held, place)
        case _:
            return None


def _value(expression: ast.expr, place: Place) -> Any:
    """Return the value of an expression of names, constants and items; anything else counts for nothing."""
    match expression:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return place.frame.f_locals.get(name, place.frame.f_globals.get(name, _NOTHING))
        case ast.Subscript(value=held, slice=part):
            return _item(_value(held, place), _value(part, place))
        case _:
            return _NOTHING


def _item(holder: Any, key: Any) -> Any:
    kind = cast("type[Any]", type(holder))
    if kind is dict and type(key) in (str, int):
        return holder.get(key, _NOTHING)
    if kind in (list, tuple) and type(key) is int:
        return holder[key] if -len(holder) <= key < len(holder) else _NOTHING
    return _NOTHING
