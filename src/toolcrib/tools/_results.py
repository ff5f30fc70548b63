"""Check of results against the return annotation, by their type, logged once for each tool."""

from __future__ import annotations

import logging
from inspect import formatannotation
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from typing_extensions import is_typeddict

from toolcrib import schema

_log = logging.getLogger("toolcrib.tools")
_MOST = 64  # types that are remembered of one tool: one may make a class for each call


class ResultCheck:
    """Logs the first result of a tool that does not fit its return annotation.

    Attributes:
        checked_types: The types of results that were checked already.
    """

    __slots__ = ("_is_logged", "_spec", "checked_types")

    def __init__(self, spec: schema.ToolSpec) -> None:
        self._spec, self._is_logged = spec, False
        self.checked_types: set[type[Any]] = set()

    def note(self, value: Any) -> None:
        """Check a result of a type that is not in `checked_types`."""
        if len(self.checked_types) >= _MOST:
            self.checked_types.clear()
        self.checked_types.add(cast("type[Any]", type(value)))
        annotation = self._spec.return_type
        if not self._is_logged and annotation is not None and not may_be(value, annotation):
            self._is_logged = True
            _log.warning(
                "%s: a result has the type %s, and the tool is annotated to give %s; this is logged once",
                self._spec.name,
                type(value).__qualname__,
                formatannotation(annotation),
            )


def may_be(value: object, annotation: Any) -> bool:
    """Return whether a value may be of a type, as far as its class says; True where the type says too little."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return may_be(value, get_args(annotation)[0])
    if origin is Union or origin is UnionType:
        return any(may_be(value, part) for part in get_args(annotation))
    if origin is Literal:
        return any(type(value) is type(choice) for choice in get_args(annotation))
    kind: Any = dict if is_typeddict(annotation) else annotation if origin is None else origin
    if kind is float:
        kind = (float, int)
    elif not isinstance(kind, type) or kind is object:
        return True
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked at run time
        return True
