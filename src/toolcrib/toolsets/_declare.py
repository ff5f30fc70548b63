"""Members of a toolset that is declared as a class: `use`, `off`, `nested`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload, runtime_checkable

from pydantic import BaseModel

from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Tool, as_tool
from toolcrib.toolsets._select import Group, Selector

if TYPE_CHECKING:
    from toolcrib.toolsets._toolset import Toolset

__all__ = ["Member", "NestedMember", "ToolSource", "declared_members", "member_of", "nested", "off", "use"]

X = TypeVar("X")
T = TypeVar("T", bound="Toolset")


@runtime_checkable
class ToolSource(Protocol):
    """A member whose tools are known only when a run opens: an MCP server, another framework's toolset."""

    def open_source(self, ctx: RunContext[Any]) -> AbstractAsyncContextManager[Toolset]:
        """Return a context manager that gives the tools while it is open."""
        ...


class Member(Generic[X]):
    """A tool as a member of a toolset class; read from the class or an object it is the tool's selector."""

    __slots__ = ("item", "off")

    def __init__(self, item: X, *, off: bool = False) -> None:
        self.item, self.off = item, off

    def __get__(self, toolset: object, owner: type) -> Selector[X]:
        if isinstance(self.item, ToolSource):
            raise AttributeError("its tools are known only when a run opens; select them by name")
        made = as_tool(self.item)
        return Selector(made.name, made, self.item)


class NestedMember(Generic[T]):
    """Another toolset as a member: its tools are members too, and its attributes are their selectors."""

    __slots__ = ("item", "off")

    def __init__(self, item: Toolset | type[Toolset], *, off: bool = False) -> None:
        self.item, self.off = item, off

    def __get__(self, toolset: object, owner: type) -> Group:
        cls = self.item if isinstance(self.item, type) else type(self.item)
        members = {name: getattr(cls, name) for name, one in cls.declared() if not isinstance(one.item, ToolSource)}
        made = self.item() if isinstance(self.item, type) else self.item
        return Group(tuple(made.names()), MappingProxyType(members))


def use(item: X) -> Member[X]:
    """Declare a member of a toolset class: a tool, a function, a `BaseTool` class, or a declared input."""
    return Member(item)


def off(item: X) -> Member[X]:
    """Declare a member that is not offered by default."""
    return Member(item, off=True)


@overload
def nested(item: type[T], *, off: bool = False) -> type[T]: ...
@overload
def nested(item: T, *, off: bool = False) -> T: ...
def nested(item: Any, *, off: bool = False) -> Any:
    """Declare another toolset whose tools become members; `off` leaves all of them out of what is offered by default.

    Type checkers see the toolset itself, so that `AppTools.data.get_user` is checked as `DataTools.get_user` is.
    """
    return NestedMember[Any](item, off=off)


def _is_member(value: object) -> bool:
    """Return whether a class attribute stands for tools without having been wrapped."""
    if isinstance(value, Tool | BaseTool):
        return True
    if not isinstance(value, type):
        return isinstance(value, ToolSource)
    declared = issubclass(value, BaseModel) and "__toolcrib_tool__" in value.__dict__
    return declared or issubclass(value, BaseTool)


def member_of(value: object) -> Member[Any] | NestedMember[Any] | None:
    """Return the member that a class attribute is, or stands for bare; None for anything else."""
    if isinstance(value, Member | NestedMember):
        return cast("Member[Any] | NestedMember[Any]", value)
    return Member(value) if _is_member(value) else None


def declared_members(cls: type) -> Iterator[tuple[str, Member[Any] | NestedMember[Any]]]:
    """Yield the members that a class and its bases declare, bases first, each name once."""
    found: dict[str, Member[Any] | NestedMember[Any]] = {}
    for owner in reversed(cls.__mro__):
        for name, value in vars(owner).items():
            if isinstance(value, Member | NestedMember):
                found[name] = cast("Member[Any] | NestedMember[Any]", value)
    yield from found.items()
