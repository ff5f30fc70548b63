"""Members of a toolset that is declared as a class: made by `use` and `off`, or another toolset."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from toolcrib import toolsets
from toolcrib.tools import BaseTool, Tool, as_tool
from toolcrib.toolsets._sources import ToolSource

X = TypeVar("X")


class Member(Generic[X]):
    """A tool as a member of a toolset class; read from the class or an object it is the tool's selector."""

    __slots__ = ("item", "off")

    def __init__(self, item: X, *, off: bool = False) -> None:
        self.item, self.off = item, off

    def __get__(self, toolset: object, owner: type) -> toolsets.Selector[X]:
        if isinstance(self.item, ToolSource):
            raise AttributeError("its tools are known only when a run opens; select them by name")
        member = as_tool(self.item)
        return toolsets.Selector(member.name, member, self.item)


class NestedMember:
    """Another toolset as a member, or its class: its tools are members too, and its attributes are their selectors."""

    __slots__ = ("item", "off")

    def __init__(self, item: Any, *, off: bool = False) -> None:
        self.item, self.off = item, off

    def __get__(self, toolset: object, owner: type) -> toolsets.Group:
        names = tuple(part.name for part in self.item.all())
        cls: Any = self.item if isinstance(self.item, type) else type(self.item)
        members = {name: getattr(cls, name) for name, part in cls.declared() if not isinstance(part.item, ToolSource)}
        return toolsets.Group(names, MappingProxyType(members))


AnyMember: TypeAlias = Member[Any] | NestedMember


def use(item: X) -> Member[X]:
    """Declare a member of a toolset class: a tool, a function, a `BaseTool` class, or a declared input."""
    return Member(item)


def off(item: X) -> Member[X]:
    """Declare a member that is not offered by default."""
    return Member(item, off=True)


def _is_member(value: object) -> bool:
    """Return whether a class attribute stands for tools without having been wrapped."""
    if isinstance(value, Tool | BaseTool):
        return True
    if not isinstance(value, type):
        return isinstance(value, ToolSource)
    declared = issubclass(value, BaseModel) and "__toolcrib_tool__" in value.__dict__
    return declared or issubclass(value, BaseTool)


def member_of(value: object) -> AnyMember | None:
    """Return the member that a class attribute is, or stands for bare; None for anything else."""
    if isinstance(value, Member | NestedMember):
        return cast("AnyMember", value)
    return Member(value) if _is_member(value) else None


def declared_members(cls: type) -> Iterator[tuple[str, AnyMember]]:
    """Yield the members that a class and its bases declare, bases first, each name once."""
    found: dict[str, AnyMember] = {}
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            if isinstance(value, Member | NestedMember):
                found[name] = cast("AnyMember", value)
    yield from found.items()
