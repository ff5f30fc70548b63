"""Arguments of a turn: checked by name, evaluated, and as JSON where they come back as what they were."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutine
from math import isfinite
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.errors import NotPortableError, SchemaError
from toolcrib.schema import ToolSpec
from toolcrib.tools import Tool, is_thunk

_log = logging.getLogger("toolcrib.turns")
_NUMBERS = frozenset({int, float})  # an abstract class takes long to say what an object is


def checked_tool(tool: object) -> Tool[..., Any]:
    """Return `tool` when it is one."""
    if isinstance(tool, Tool):
        return cast("Tool[..., Any]", tool)
    raise TypeError(f"a turn needs a tool or the name of a registered one, not {tool!r}; decorate it with @tool")


def require_options(timeout: object, kwargs: object, metadata: object) -> None:
    """Raise TypeError for options of a turn that are of other classes, as arguments in the place of the timeout."""
    if timeout is not None and type(timeout) not in _NUMBERS and isinstance(timeout, Mapping | Sequence):
        raise TypeError(f"a turn: timeout is {timeout!r:.80}; arguments are given as in Turn(tool, kwargs={{...}})")
    if type(kwargs) is not dict and not isinstance(kwargs, Mapping | None):
        raise TypeError(f"a turn: kwargs is {kwargs!r:.80}; give arguments by name, as in kwargs={{'cents': 4200}}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"a turn: metadata is {metadata!r:.80}; give values by name, as in metadata={{'order': 'A7'}}")


def named_arguments(tool: Tool[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host's arguments by name, complete or not; what the tool does not take is dropped with a log line.

    Raises:
        TypeError: `args` is not a list.
    """
    if isinstance(args, Mapping | str | bytes) or not isinstance(args, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"`args` of a turn of `{tool.__name__}` is a list; give arguments by name as in kwargs={{...}}")
    named, dropped = tool.spec.name_host(args, kwargs)
    if dropped:
        _log.info("a turn of %s ignores the arguments %s", tool.__name__, ", ".join(dropped))
    return named


async def evaluated(value: Any) -> Any:
    """Return the result of a callable without parameters; any other value, a tool too, is returned unchanged."""
    if isinstance(value, Tool) or not is_thunk(value):
        return cast("Any", value)
    result = value()
    return await result if iscoroutine(result) else result


# --- as JSON


@runtime_checkable
class _Portable(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def pack(owner: str, noun: str, value: Any) -> Any:
    """Return `value` as JSON shapes.

    Raises:
        NotPortableError: It has none; `owner` and `noun` say whose and which.
    """
    try:
        if is_plain(value):
            return _writable(value)
        _require_kept(value)
        return _writable(to_jsonable_python(value, inf_nan_mode="strings", fallback=_own_form))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise _not_portable(owner, noun, value, error) from error


def _writable(shapes: Any) -> Any:
    """Return JSON shapes; raises ValueError or RecursionError for a number or nesting beyond what text can have."""
    json.dumps(shapes)
    return shapes


def _not_portable(owner: str, noun: str, value: object, error: Exception) -> NotPortableError:
    reason = f"{error}" if type(error) in (ValueError, RecursionError) else ""
    return NotPortableError(owner, noun, type(value).__qualname__, reason)


def _require_kept(value: Any) -> None:
    """Raise ValueError for an iterator, an open file too: written down it would be used up, and come back as a list."""
    if isinstance(value, Iterator):
        raise ValueError("an iterator is used up by reading it")
    if isinstance(value, Mapping):
        value = cast("Mapping[Any, Any]", value).values()
    elif not isinstance(value, list | tuple | set | frozenset):
        return
    for item in cast("Iterable[Any]", value):
        _require_kept(item)


def _own_form(value: Any) -> Any:
    if isinstance(value, _Portable):
        return value.to_dict()
    raise ValueError(f"{type(value).__qualname__} has no JSON form")


def is_plain(value: Any) -> bool:
    """Return whether `value` is JSON as it is, and comes back as the same."""
    kind = cast("type[Any]", type(value))
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return isfinite(value)
    if kind is list:
        return all(is_plain(item) for item in value)
    return kind is dict and all(type(key) is str and is_plain(item) for key, item in value.items())


def pack_arguments(owner: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return arguments as JSON shapes, and the names of those that the tool's annotations have to restore.

    Raises:
        NotPortableError: One has no JSON form, or would come back as something else.
    """
    packed: dict[str, Any] = {}
    typed: list[str] = []
    for name, value in arguments.items():
        try:
            if is_plain(value):
                packed[name] = _writable(value)
                continue
            _require_kept(value)
            (packed[name],) = map(_writable, spec.canonical({name: value}).values.values())
            back = _restored(spec, {name: packed[name]})[name]
            is_equal = type(back) is type(value) and bool(back == value)
        except Exception as error:  # the code of any type
            raise _not_portable(owner, f"the argument `{name}`", value, error) from error
        if not is_equal:
            raise NotPortableError(owner, f"the argument `{name}`", type(value).__qualname__)
        typed.append(name)
    return packed, typed


def unpack_arguments(spec: ToolSpec, data: Mapping[str, Any], typed: list[str]) -> dict[str, Any]:
    """Return the arguments that `pack_arguments` wrote down."""
    return {**data, **_restored(spec, {name: data[name] for name in typed})}


def _restored(spec: ToolSpec, data: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return spec.read_some(data) if data else data
    except (SchemaError, ValidationError):
        return data
