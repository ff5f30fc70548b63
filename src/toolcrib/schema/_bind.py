"""Binder of a host's arguments to parameter names, and back to what the function takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any

from pydantic_core import PydanticUndefined

from toolcrib.errors import FieldProblem, InvalidArguments
from toolcrib.schema._markers import is_field
from toolcrib.schema._parameters import EMPTY, Resolved


class Binder:
    """The parameters of a function, worked out once, so that a call costs no `inspect.BoundArguments`."""

    def __init__(self, tool: str, parameters: Sequence[Resolved], fixed: frozenset[str]) -> None:
        self._tool = tool
        by_position = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
        self._in_order = tuple(by_position)
        self._simple_order = tuple(p.name for p in by_position) if not any(p.injected for p in by_position) else None
        self._positional_only = tuple(p for p in by_position if p.kind == Parameter.POSITIONAL_ONLY)
        self._only_by_position = frozenset(p.name for p in self._positional_only)
        self._var_positional = next((p.name for p in parameters if p.kind == Parameter.VAR_POSITIONAL), None)
        self._var_keyword = any(p.kind == Parameter.VAR_KEYWORD for p in parameters)
        self._names = frozenset(p.name for p in parameters if p.kind != Parameter.VAR_KEYWORD)
        self._required = tuple(p.name for p in parameters if is_required(p) and p.name not in fixed)
        self._defaults = {p.name: p.default for p in parameters if is_field(p.default)}
        self.plain = not self._positional_only and self._var_positional is None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the arguments by name, and what was dropped because the function does not take it.

        Raises:
            InvalidArguments: A required argument is missing, or one is given twice. A TypeError.
        """
        bound, dropped = self.name(args, kwargs)
        for name in self._required:
            if name not in bound:
                raise self._missing(bound, dropped)
        if self._defaults:
            for name, info in self._defaults.items():
                if name not in bound:
                    value = info.get_default(call_default_factory=True, validated_data=bound)
                    if value is not PydanticUndefined:
                        bound[name] = value
        return bound, dropped

    def name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the arguments by name, and what was dropped, whether or not any is missing.

        Raises:
            InvalidArguments: One is given twice. A TypeError.
        """
        if args:
            bound, dropped = self._bind_positional(args)
            return bound, dropped + self._bind_keywords(bound, kwargs) if kwargs else dropped
        if self._var_positional is None and (self._var_keyword or kwargs.keys() <= self._names):
            return dict(kwargs), ()
        bound: dict[str, Any] = {}
        return bound, self._bind_keywords(bound, kwargs)

    def _bind_positional(self, args: Sequence[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        order: tuple[str, ...] = self._order_for(args) if self._simple_order is None else self._simple_order
        bound: dict[str, Any] = dict(zip(order, args, strict=False))
        if len(args) <= len(order) and self._var_positional is None:
            return bound, ()
        extra = args[len(order) :]
        if self._var_positional is not None:
            bound[self._var_positional] = tuple(extra)
            return bound, ()
        return bound, tuple(f"argument {len(order) + i + 1}" for i in range(len(extra)))

    def _order_for(self, args: Sequence[Any]) -> tuple[str, ...]:
        """Return the names that `args` stand for: a parameter that the run fills is skipped unless a value fits it."""
        names: list[str] = []
        for parameter in self._in_order:
            injected = parameter.injected
            if injected is None or (len(names) < len(args) and fits(args[len(names)], injected.type)):
                names.append(parameter.name)
        return tuple(names)

    def _bind_keywords(self, bound: dict[str, Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
        by_position = frozenset(bound)
        dropped: list[str] = []
        for name, value in kwargs.items():
            if name in by_position and (name != self._var_positional or bound[name]):
                if self._var_keyword and name in self._only_by_position:
                    dropped.append(name)  # Python would put it into **kwargs, and here it would be the other one
                    continue
                raise InvalidArguments(self._tool, (FieldProblem(name, "given twice, by position and by name"),))
            if name == self._var_positional:
                if not isinstance(value, list | tuple):
                    raise InvalidArguments(self._tool, (FieldProblem(name, "must be a list or a tuple"),))
                bound[name] = tuple(value)  # pyright: ignore[reportUnknownArgumentType] -- the caller's own values
            elif name in self._names or self._var_keyword:
                bound[name] = value
            else:
                dropped.append(name)
        return tuple(dropped)

    def _missing(self, bound: Mapping[str, Any], dropped: Iterable[str]) -> InvalidArguments:
        """Return the error about what is missing; it names what was dropped, one of which may be meant."""
        missing = [FieldProblem(name, "missing, it is required") for name in self._required if name not in bound]
        unknown = [FieldProblem(name, "unknown, it is ignored") for name in dropped]
        return InvalidArguments(self._tool, (*missing, *unknown))

    def split(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `(args, kwargs)` with which the function takes these arguments."""
        keywords = dict(arguments)
        rest: Any = keywords.pop(self._var_positional, ()) if self._var_positional is not None else ()
        positional: list[Any] = []
        for parameter in self._in_order if rest else self._positional_only:
            if parameter.name in keywords:
                positional.append(keywords.pop(parameter.name))
            elif parameter.default is not EMPTY:
                positional.append(parameter.default)
            else:
                return positional, keywords  # the call itself then says what is missing
        positional.extend(rest)
        return positional, keywords


def is_required(parameter: Resolved) -> bool:
    """Return whether a call without this argument is an error of the caller's."""
    if parameter.injected is not None or parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return False
    if is_field(parameter.default):
        return parameter.default.is_required()
    return parameter.default is EMPTY and not parameter.omitted


def fits(value: Any, wanted: Any) -> bool:
    """Return whether `value` can be meant for a parameter that the run fills with a `wanted`."""
    return isinstance(value, wanted) if isinstance(wanted, type) else True
