"""Markers on parameters: supplied by the host, or secret."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypeIs

from toolcrib._passwords import REDACTED, STARS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

InjectedKind: TypeAlias = Literal["context", "injectable", "injected"]
"""The mark of a parameter that the run fills."""


def is_field(value: object) -> TypeIs[FieldInfo]:
    """Return whether a value is a `Field(...)`: before the first one, pydantic's module of fields is not loaded."""
    fields: Any = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(value, fields.FieldInfo)


class Injectable:
    """Base class of what the run itself supplies: a parameter typed with a subclass is hidden from the model.

    The pipeline looks the subclass up in what the run provides; `X | None` gets None without one.
    """

    __slots__ = ()


class Injected:
    """Mark a parameter of any type as supplied by the run: `db: Annotated[Database, Injected]`.

    The pipeline looks it up by the parameter's name first, then by its type.
    """

    __slots__ = ()


class IdempotencyKey(str, Injectable):
    """A text that is the same whenever one call is executed, after a crash too, and another for every other call.

    A tool with a parameter `key: IdempotencyKey` sends it along to a system that knows by it what it has done already.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class InjectedParameter:
    """A parameter that the pipeline fills.

    Attributes:
        type: The class to look up, without `| None` and `Annotated`; for `context` the RunContext class.
        optional: The run may go without: the parameter has a default, or accepts None.
        has_default: Leave the argument out when the run provides nothing; else, when optional, pass None.
    """

    name: str
    type: Any
    kind: InjectedKind
    optional: bool
    has_default: bool


class Content:
    """Mark a parameter that says something and decides nothing: `body: Annotated[str, Content]`.

    With a `Provenance` policy, the other parameters of a tool may not have a stranger's value unasked: who, where and
    how much. Of content only links, addresses and private values are asked about.
    """

    __slots__ = ()


class Decides:
    """Mark a parameter that decides who, where or how much: `to: Annotated[str, Decides]`.

    Without marks every parameter decides. The mark keeps one that a tool or a rule of a `Provenance` policy would take
    for content by `content=["*"]`, which is for tools with many parameters of which few decide.
    """

    __slots__ = ()


class Redacted:
    """Mark a value as secret: `key: Annotated[str, Redacted]`, at any depth of the input.

    Where arguments are dumped for a record, a log or an approval text it shows as "[redacted]"; the tool gets the
    value.
    """

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the marked type, serialised by a function that hides the value when asked to."""
        schema = handler(source)
        hiding = core_schema.wrap_serializer_function_ser_schema(hide_when_asked, info_arg=True)
        if schema["type"] in _PLAIN_TYPES and "serialization" not in schema and "ref" not in schema:
            return cast(CoreSchema, {**schema, "serialization": hiding})  # later constraints still find the type itself
        return core_schema.chain_schema([schema], serialization=hiding)


_PLAIN_TYPES = frozenset(
    {"str", "int", "float", "bool", "bytes", "decimal", "list", "tuple", "set", "frozenset", "dict"}
)


def hide_when_asked(
    value: Any, handler: core_schema.SerializerFunctionWrapHandler, info: core_schema.SerializationInfo[Any]
) -> Any:
    """Serialise a `Redacted` value: as "[redacted]" when the context asks for it, else as its type does."""
    context = info.context
    if isinstance(context, Mapping) and cast("Mapping[str, Any]", context).get("redact"):
        return REDACTED
    return handler(value)


def hidden_paths(value: Any, path: str = "") -> list[str]:
    """Return where a JSON value has a secret as it is shown, hidden, in place of the real one."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value).items()
        return [found for name, part in parts for found in hidden_paths(part, f"{path}.{name}" if path else name)]
    if isinstance(value, list):
        items = enumerate(cast("list[Any]", value))
        return [found for number, part in items for found in hidden_paths(part, f"{path}[{number}]")]
    return [path] if value in (REDACTED, STARS) else []
