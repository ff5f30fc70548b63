"""Calls of tools that cannot turn out right, whatever the values: too many arguments, unknown ones, missing ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection
from dataclasses import dataclass
from inspect import Parameter

from toolcrib.errors import SchemaError, closest
from toolcrib.schema import ToolSpec

__all__ = ["CallShape", "called_name", "misuse"]

_TOLD = 10  # unknown arguments
_NAME = 100  # characters of one
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class CallShape:
    """How a tool may be called.

    Attributes:
        signature: The same for a reader.
        order: The arguments that may be given by position.
        more: Further ones may follow.
        names: The arguments that may be given by name; None for any.
        required: Those that have to be given.
    """

    signature: str
    order: tuple[str, ...] = ()
    more: bool = False
    names: frozenset[str] | None = None
    required: frozenset[str] = frozenset()

    @classmethod
    def of(cls, spec: ToolSpec, signature: str) -> CallShape | None:
        """Return how a tool may be called; None when that cannot be told beforehand."""
        try:
            schema = spec.parameters
            fields = spec.input_model.model_fields
        except SchemaError:
            return None
        listed = frozenset[str](schema.get("properties", ()))
        if listed != fields.keys():  # arguments with other names for a model than for Python
            return None
        order, more = tuple(fields), False
        if spec.fn is not None:
            shown = [p for p in inspect.signature(spec.fn).parameters.values() if p.name in listed]
            order = tuple(p.name for p in shown if p.kind in _BY_POSITION)
            more = any(p.kind == Parameter.VAR_POSITIONAL for p in shown)
        names = None if schema.get("additionalProperties", False) is not False else listed
        return cls(signature, order, more, names, frozenset(schema.get("required", ())))


def called_name(call: ast.Call) -> str | None:
    """Return the tool that a call names: `name`, or `parent__child` where `parent.child` is written."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=parent), attr=child):
            return f"{parent}__{child}"
        case _:
            return None


def misuse(call: ast.Call, shape: CallShape) -> str | None:
    """Return what is wrong with a call of a tool; None when it may turn out right."""
    unpacked = any(isinstance(argument, ast.Starred) for argument in call.args)
    given = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    wrong: list[str] = []
    if not unpacked and not shape.more and len(call.args) > len(shape.order):
        wrong.append(_too_many(shape, len(call.args)))
    placed = frozenset(() if unpacked else shape.order[: len(call.args)])
    wrong += [f"`{name}` is given twice, by position and by name" for name in given if name in placed]
    if shape.names is not None:
        unknown = [name for name in given if name not in shape.names]
        wrong += [_unknown(name, shape.names) for name in unknown[:_TOLD]]
        wrong += [f"and {len(unknown) - _TOLD} more that it has not"] if len(unknown) > _TOLD else []
    if not unpacked and len(given) == len(call.keywords):
        missing = shape.required - placed - frozenset(given)
        wrong += [f"`{name}` is missing" for name in shape.order if name in missing]
        wrong += [f"`{name}` is missing" for name in sorted(missing.difference(shape.order))]
    return f"{'; '.join(wrong)}. Call it as `{shape.signature}`." if wrong else None


def _too_many(shape: CallShape, given: int) -> str:
    if not shape.order:
        return f"it takes no arguments by position, and {given} are given"
    return f"it takes at most {len(shape.order)} arguments by position, and {given} are given"


def _unknown(name: str, known: Collection[str]) -> str:
    near = closest(name[:_NAME], known)
    return f"it has no argument `{name[:_NAME]}`{f' ({near[:-1]}?)' if near.startswith('Did') else ''}"
