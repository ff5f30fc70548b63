"""Tools of another framework, and what its agents have, as members of a toolset."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast

from toolcrib._short_repr import kind_of
from toolcrib.errors import ToolcribError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.tools import BaseTool, Tool, ToolOptions
from toolcrib.toolsets import Toolset

T = TypeVar("T")


def provided(ctx: RunContext[Any], kind: type[T]) -> T | None:
    """Return an object of a type that the run of a call provides, such as the framework's own context."""
    found = cast("Mapping[Any, Any]", ctx.provided).get(kind)
    return found if isinstance(found, kind) else None


def gates_lost(around: str) -> TypeError:
    """Return the error of an agent whose tools cannot be members, for what is around them there."""
    return TypeError(f"{around} around its tools would be lost; name the tools themselves, with gates of yours")


def require_tools(who: str, tools: Iterable[T], kind: type[Any], wrap: str = "") -> list[T]:
    """Return tools of another framework as a list.

    Args:
        who: The function that takes them.
        tools: The tools.
        kind: The type of one.
        wrap: The framework's maker of tools from functions; where it is empty, others than tools are taken.

    Raises:
        TypeError: A tool is given alone, or a plain function is among them.
    """
    if isinstance(tools, kind):
        raise TypeError(f"{who} takes several tools, and this is one: {who}([{getattr(tools, 'name', 'tool')}])")
    if isinstance(tools, str) or not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"{who} takes several tools, as a list: {who}([{getattr(tools, '__name__', 'tool')}])")
    found = [*tools]
    ours = [cast("Tool[..., Any]", tool).name for tool in found if isinstance(tool, Tool)]
    if ours:
        raise TypeError(f"{who} takes tools of the framework, and `{ours[0]}` is one of Toolcrib: Toolset([...])")
    other = next((tool for tool in found if wrap and not isinstance(tool, kind)), None)
    if other is not None:
        name = getattr(other, "__name__", repr(other))
        raise TypeError(f"{who} takes tools, and {name:.80} is {kind_of(other)}: wrap it with {wrap}")
    return found


_RULES_ABOUT_NAMES = {
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
}
"""Keywords of a schema that may allow arguments which it does not list."""


def without_others(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema of a tool's arguments, without those that it neither lists nor allows.

    A framework drops what its tool does not take: a person who is asked about such an argument approves another call.
    """
    if "properties" not in parameters or not _RULES_ABOUT_NAMES.isdisjoint(parameters):
        return parameters
    return {**parameters, "additionalProperties": False}


class FrameworkMember(BaseTool):
    """A tool of another framework as a tool of ours; `make` of an adapter runs it.

    Args:
        name: The tool's name.
        description: The description that models are shown.
        parameters: The JSON schema of its arguments.
    """

    def __init__(self, name: str, description: str, parameters: Mapping[str, Any]) -> None:
        self._name, self._description, self._parameters = name, description, without_others(parameters)

    def tool(self, **options: Any) -> Tool[..., Any]:
        """Return it as one of ours, with these `ToolOptions`."""
        spec = ToolSpec.from_schema(
            self._call, self._parameters, name=self._name, description=self._description, check=self.check
        )
        spec.is_elsewhere = True
        return Tool(spec, ToolOptions(**options), source=self)

    def check(self, arguments: dict[str, Any]) -> None:
        """Check the types of the arguments before a gate is asked, where their framework has a model of them.

        Raises:
            ValidationError: They do not fit.
        """

    @abstractmethod
    async def make(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        """Run their tool, and return its value."""

    async def _call(self, **arguments: Any) -> Any:
        ctx = ambient_context()
        if ctx is None:
            raise ToolcribError(f"`{self._name}` is called outside a run")
        return await self.make(ctx, arguments)


class AgentTools:
    """A source of tools: those of an agent of another framework, which are known only when it has them listed.

    Args:
        opened: Gives the tools while what they need, such as the agent's MCP servers, is connected.
    """

    def __init__(
        self,
        opened: Callable[[RunContext[Any]], AbstractAsyncContextManager[Toolset | Sequence[Toolset | Tool[..., Any]]]],
    ) -> None:
        self._opened = opened

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncGenerator[Toolset]:
        """Connect what the tools need, and give them while it is connected."""
        async with self._opened(ctx) as tools:
            yield Toolset.of(tools)
