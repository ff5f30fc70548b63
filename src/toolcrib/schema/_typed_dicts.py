"""TypedDicts of `typing` on Python 3.11, where pydantic takes only that of typing_extensions."""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

import typing_extensions
from typing_extensions import get_type_hints

_models: dict[Any, Any] = {}  # by the author's class: one model for it, wherever it is used
_typed_dict: Any = typing_extensions.TypedDict  # as a function: it is given the fields of an existing class
_REQUIRED: tuple[Any, ...] = (Required, typing_extensions.Required)
_NOT_REQUIRED: tuple[Any, ...] = (NotRequired, typing_extensions.NotRequired)
_WRAPPERS = (*_REQUIRED, *_NOT_REQUIRED, typing_extensions.ReadOnly)


def modern(annotation: Any) -> Any:
    """Return a type with each `typing.TypedDict` in it replaced by its equal from typing_extensions.

    On Python 3.12 and newer that is the type itself. A TypedDict that contains itself is cut off there: the inner one
    is any object.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and typing.is_typeddict(annotation):
        return _equal(annotation)
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is typing.Literal:
        return annotation
    if get_origin(annotation) is Annotated:
        inner = modern(arguments[0])
        return annotation if inner is arguments[0] else Annotated[inner, *arguments[1:]]
    changed = tuple(modern(argument) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    return with_arguments(annotation, changed)


def with_arguments(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    if isinstance(annotation, types.UnionType):
        return typing.Union[arguments]  # noqa: UP007 -- of a tuple, which `|` does not take
    if isinstance(annotation, types.GenericAlias):
        origin: Any = annotation.__origin__
        return types.GenericAlias(origin, arguments)
    return annotation.copy_with(arguments) if hasattr(annotation, "copy_with") else annotation


def _equal(cls: Any) -> Any:
    if type(cls).__module__ != "typing":
        return cls
    if cls in _models:
        return _models[cls]
    _models[cls] = dict[str, Any]  # what it finds if it contains itself
    try:
        hints = get_type_hints(cls, include_extras=True)
        fields = {name: _wrapped(hint, name in cls.__required_keys__) for name, hint in hints.items()}
    except BaseException:
        del _models[cls]
        raise
    typed_dict = _typed_dict(cls.__name__, fields)
    typed_dict.__module__, typed_dict.__qualname__, typed_dict.__doc__ = cls.__module__, cls.__qualname__, cls.__doc__
    if hasattr(cls, "__pydantic_config__"):
        typed_dict.__pydantic_config__ = cls.__pydantic_config__
    _models[cls] = typed_dict
    return typed_dict


def _wrapped(hint: Any, required: bool) -> Any:
    """Return a key's type, marked as required or not; what its own text says counts more than what the class knows."""
    while get_origin(hint) in _WRAPPERS:
        if get_origin(hint) in _REQUIRED:
            required = True
        elif get_origin(hint) in _NOT_REQUIRED:
            required = False
        hint = get_args(hint)[0]
    return Required[modern(hint)] if required else NotRequired[modern(hint)]
