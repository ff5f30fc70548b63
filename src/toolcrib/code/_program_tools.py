"""Tools as functions of a program: their Python names, how each is called, and its arguments by name."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, cast

from toolcrib._numbers import count_text
from toolcrib.errors import DuplicateNameError, InvalidArguments, SchemaError
from toolcrib.tools import Tool

_DYNAMIC_NAMES = re.compile(r"\b(?:globals|eval|exec|locals|vars)\b")
"""A program with one of these may call a function without writing its name."""

_EXCESS = 20  # arguments more than a tool has, up to which each of them is named in the refusal
_SHOWN = 3  # of the unknown ones from then on
_NAME_CHARS = 100
_COLUMNS = {"$columns"}  # the key of an object that stands for a table without rows
_RESERVED = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"asyncio"}


def program_names(tools: Iterable[str]) -> dict[str, str]:
    """Return the tools' names by the names that programs use.

    A character that cannot stand in a Python name becomes an underscore, and a name that Python has taken gets one at
    its end: `get-weather` is called as `get_weather`, `open` as `open_`.

    Raises:
        DuplicateNameError: Two tools would have one name.
    """
    names: dict[str, str] = {}
    for tool in tools:
        name = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in tool)
        if not name.isidentifier():  # it begins with a digit, or is empty
            name = f"_{name}"
        if name in _RESERVED:
            name += "_"
        first = names.setdefault(name, tool)
        if first != tool:
            mend = f"In a program both would be `{name}`: rename one."
            raise DuplicateNameError(name, f"`{first}`", f"`{tool}`", mend)
    return names


def tools_in(code: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the functions that a program may call, of these names: those that it mentions."""
    return tuple(names) if _DYNAMIC_NAMES.search(code) else mentioned_in(code, names)


def mentioned_in(code: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the functions, of these names, that a program mentions."""
    words = {*re.findall(r"\w+", code.replace(".", "__")), *re.findall(r"\w+", code)}
    return tuple(name for name in names if name in words)


@dataclass(frozen=True, slots=True)
class CallShape:
    """The arguments that a call of a tool may have.

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


class ProgramTool:
    """One tool as programs call it.

    Args:
        program_name: The name that programs use.
        tool: The tool.
        name: The tool's name in its toolset.

    Attributes:
        name: As given.
        spec: The tool's schema.
    """

    def __init__(self, program_name: str, tool: Tool[..., Any], name: str) -> None:
        self.name, self.spec = name, tool.spec
        self._program_name, self._tool = program_name, tool

    @cached_property
    def signature(self) -> str:
        """The tool's signature, with the name that programs use."""
        try:
            signature = self._tool.signature
        except SchemaError:  # the pipeline reports it when the tool is called
            return f"{self._program_name}(...)"
        return signature.replace(self._tool.name, self._program_name, 1)

    @cached_property
    def shape(self) -> CallShape | None:
        """The arguments that a call may have; None when that is not known before the call."""
        try:
            schema, fields = self.spec.parameters, self.spec.input_model.model_fields
        except SchemaError:
            return None
        listed = frozenset[str](schema.get("properties", ()))
        if self.spec.is_of_schema or listed != fields.keys():  # other names for a model than for Python
            return None
        order, rest = self.spec.by_position
        names = None if schema.get("additionalProperties", False) is not False else listed
        return CallShape(self.signature, order, rest is not None, names, frozenset(schema.get("required", ())))

    def clipped(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call; of more than the tool can take, only so many that `bind` refuses them.

        It comes first, so that nothing else is computed of tens of thousands of arguments.
        """
        shape = self.shape
        if shape is None:
            return args, kwargs
        if not shape.more and len(args) > len(shape.order) + _EXCESS:
            args = args[: len(shape.order) + _EXCESS + 1]
        if shape.names is not None and len(kwargs) > len(shape.names) + _EXCESS:
            kwargs = dict(islice(kwargs.items(), len(shape.names) + _EXCESS + 1))
        return args, kwargs

    def bind(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the arguments of a call by name, and why they cannot all be named: a fault, which fails the call."""
        arguments, fault = self._named(args, kwargs)
        return {name: self._without_rows(name, value) for name, value in arguments.items()}, fault

    def _without_rows(self, name: str, value: Any) -> Any:
        """Return an argument; a table without rows becomes an empty list where the parameter does not take a table."""
        if type(value) is not dict or cast("dict[str, Any]", value).keys() != _COLUMNS:
            return cast("Any", value)
        return cast("Any", value if name in self.spec.table_parameters else [])

    def _named(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[dict[str, Any], str]:
        shape = self.shape if len(kwargs) > _EXCESS else None
        if shape is not None and shape.names is not None and len(kwargs) > len(shape.names) + _EXCESS:
            known = shape.names
            further = islice((name for name in kwargs if name not in known), _SHOWN)
            unknown = ", ".join(f"`{name:.{_NAME_CHARS}}`" for name in further)
            most = f"at most {count_text(len(known), 'argument')}"
            takes = f"it takes {most if known else 'no arguments'} by name"
            return kwargs, f"{takes}, and more than {len(known) + _EXCESS} were given; it has no {unknown}, and so on"
        if not args:
            return kwargs, ""
        try:
            order, rest = self.spec.by_position
        except SchemaError:  # the pipeline reports it, with the parameter's name
            return kwargs, ""
        named = dict(zip(order, args, strict=False))
        if len(args) > len(order):
            if rest is None:
                return named | kwargs, _too_many(order, len(args))
            named[rest] = args[len(order) :]
        twice = next((name for name in kwargs if name in named), None)
        return named | kwargs, "" if twice is None else f"`{twice}` is given twice, by position and by name"

    def redacted(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the arguments without secrets, for a log; None when they might hold one."""
        try:
            if not self.spec.has_secrets:
                return arguments
            return self.spec.canonical(self.spec.arguments(self.spec.validate_model(arguments))).shown
        except (InvalidArguments, SchemaError):
            return None


def _too_many(order: tuple[str, ...], count: int) -> str:
    count_shown = f"{count}" if count <= len(order) + _EXCESS else f"more than {len(order) + _EXCESS}"
    if not order:
        return f"it takes no arguments by position, and {count_shown} were given; name them"
    most = count_text(len(order), "argument")
    return f"it takes at most {most} by position ({', '.join(order)}), and {count_shown} were given"
