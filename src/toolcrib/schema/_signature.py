"""Signature of a tool on one line, as Python: `get_weather(location: str, unit: str = 'celsius') -> dict`."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence, Set
from enum import Enum
from inspect import Parameter
from types import EllipsisType, NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic_core import PydanticUndefined
from typing_extensions import TypeAliasType

from toolcrib.schema._markers import is_field
from toolcrib.schema._parameters import EMPTY, Resolved, is_parameter_name

_LONGEST_DEFAULT = 60


def type_name(annotation: Any) -> str:
    """Return a type as its author would write it, without modules and without what `Annotated` adds."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin is Union or origin is UnionType:
        return " | ".join(type_name(part) for part in arguments)
    if origin is Literal:
        return f"Literal[{', '.join(value_text(value) for value in arguments)}]"
    if arguments and origin is not None:
        inner = ", ".join(_argument_name(part) for part in arguments)
        return f"{type_name(origin)}[{inner}]"
    if annotation is None or annotation is NoneType:
        return "None"
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, type | TypeVar | TypeAliasType) or hasattr(annotation, "__supertype__"):
        return annotation.__name__
    return annotation if isinstance(annotation, str) else repr(annotation).removeprefix("typing.")


def _argument_name(argument: Any) -> str:
    if isinstance(argument, list):  # the parameters of a Callable
        return f"[{', '.join(_argument_name(part) for part in argument)}]"  # pyright: ignore[reportUnknownVariableType] -- types
    return "..." if isinstance(argument, EllipsisType) else type_name(argument)


def value_text(value: Any) -> str:
    """Return a value as Python would write it; `...` for what has no short and stable text."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    try:
        text = _set_text(cast("Set[Any]", value)) if isinstance(value, set | frozenset) else repr(value)
    except Exception:  # code of the value's author
        return "..."
    return "..." if len(text) > _LONGEST_DEFAULT or "\n" in text or " at 0x" in text else text


def _set_text(values: Set[Any]) -> str:
    inside = ", ".join(sorted(map(repr, values)))  # in the same order in every process
    if isinstance(values, frozenset):
        return f"frozenset({{{inside}}})" if values else "frozenset()"
    return f"{{{inside}}}" if values else "set()"


def has_default(parameter: Resolved) -> bool:
    """Return whether a caller may leave the parameter out."""
    if is_field(parameter.default):
        return not parameter.default.is_required()
    return parameter.omitted or parameter.default is not EMPTY


def default_text(parameter: Resolved, secret: bool) -> str:
    """Return the default as Python would write it; `...` for a secret one."""
    default = parameter.default
    if is_field(default):
        default = default.default
    if secret or default is EMPTY or default is PydanticUndefined:
        return "..."
    return value_text(default)


def joined(parameters: Sequence[tuple[Resolved, str]]) -> str:
    """Return parameters with their texts as one list, with `*` where Python needs it before keyword-only ones."""
    parts: list[str] = []
    star = optional = False
    for parameter, text in parameters:
        if parameter.kind == Parameter.VAR_POSITIONAL:
            star = True
        elif parameter.kind != Parameter.VAR_KEYWORD:
            out_of_order = optional and not has_default(parameter)
            if not star and (parameter.kind == Parameter.KEYWORD_ONLY or out_of_order):
                parts.append("*")
                star = True
            optional = optional or has_default(parameter)
        parts.append(text)
    return ", ".join(parts)


def unnamed_text(types: Mapping[str, str], required: Collection[str]) -> str:
    """Return arguments that cannot be written as `name=value` as a program gives them: `**{'x-key': str}`."""
    keys = (f"{name!r}{'' if name in required else '?'}: {text}" for name, text in types.items())
    return f"**{{{', '.join(keys)}}}"


_STARS = {int(Parameter.VAR_POSITIONAL): "*", int(Parameter.VAR_KEYWORD): "**"}


def signature_text(
    name: str, parameters: Sequence[Resolved], secrets: frozenset[str], untyped: frozenset[str], returns: Any
) -> str:
    """Return a call on one line.

    Args:
        secrets: Parameters whose default is not shown.
        untyped: Parameters without an annotation of their own.
        returns: The return annotation; `inspect.Signature.empty` without one.
    """
    texts: list[tuple[Resolved, str]] = []
    unnamed: dict[str, str] = {}
    for parameter in parameters:
        if not is_parameter_name(parameter.name):
            unnamed[parameter.name] = type_name(parameter.annotation)
            continue
        typed = "" if parameter.name in untyped else f": {type_name(parameter.annotation)}"
        text = f"{_STARS.get(parameter.kind, '')}{parameter.name}{typed}"
        if has_default(parameter):
            equals = " = " if typed else "="
            text += f"{equals}{default_text(parameter, parameter.name in secrets)}"
        texts.append((parameter, text))
    arrow = "" if returns is inspect.Signature.empty else f" -> {type_name(returns)}"
    required = [p.name for p in parameters if p.name in unnamed and not has_default(p)]
    rest = unnamed_text(unnamed, required) if unnamed else ""
    return f"{name}({', '.join(filter(None, (joined(texts), rest)))}){arrow}"
