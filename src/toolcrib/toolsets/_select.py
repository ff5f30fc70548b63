"""Selectors, availability and requirement: which tools a model is offered, and which it is asked to call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import toolcrib.formats as formats  # its names are loaded when a format is asked for
from toolcrib.errors import ToolConstraintError, explain_options
from toolcrib.tools import Tool
from toolcrib.toolsets._names import names_of

if TYPE_CHECKING:
    from toolcrib.formats import Choice, WireFormat

X = TypeVar("X")


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as a model is shown it, before it is put into a wire format.

    Attributes:
        parameters: The JSON schema of the input.
        return_schema: The JSON schema of the result, if it is known.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    return_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Selector(Generic[X]):
    """Stands for one tool of a toolset; `X` is what the member was declared with.

    Attributes:
        name: The name that models call the tool by.
        tool: The tool itself.
        declared: The object that the member was declared with; the tool where it is not a member of a class.
    """

    name: str
    tool: Tool[..., Any]
    declared: X = field(compare=False, repr=False)

    def definition(self) -> Definition:
        """Return the definition of the tool for models."""
        tool = self.tool
        return Definition(self.name, tool.description, tool.parameters, tool.return_schema)


@dataclass(frozen=True, slots=True)
class Group:
    """Stands for all tools of a nested toolset; its selectors are its attributes.

    Attributes:
        names: The names that models call the tools by, in order.
    """

    names: tuple[str, ...]
    members: Mapping[str, Any] = field(hash=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.members[name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


Selectable: TypeAlias = "str | Selector[Any] | Group | type[Any] | Tool[..., Any]"
"""A way to name tools: a name, a selector, a nested group, a declared input, a tool."""


@explain_options()
@dataclass(frozen=True, slots=True)
class ToolAvailability:
    """The tools that are offered: the default ones, all, exactly some, or the default ones and some more."""

    kind: Literal["default", "all", "only", "default_plus"] = "default"
    names: tuple[str, ...] = ()

    @classmethod
    def default(cls) -> ToolAvailability:
        """Offer every tool that is not off."""
        return cls()

    @classmethod
    def all(cls) -> ToolAvailability:
        """Offer every tool, those that are off too."""
        return cls("all")

    @classmethod
    def only(cls, *selected: Selectable) -> ToolAvailability:
        """Offer exactly these, whether they are off or not."""
        return cls("only", names_of(selected))

    @classmethod
    def default_plus(cls, *selected: Selectable) -> ToolAvailability:
        """Offer what is offered by default, and these."""
        return cls("default_plus", names_of(selected))


@explain_options()
@dataclass(frozen=True, slots=True)
class ToolRequirement:
    """The use that a model is asked to make of the tools it is offered.

    Attributes:
        kind: The requirement.
        name: The tool, of a specific requirement.
        among: The tools that may be called, of all that are defined; all of them when empty.
        parallel: Whether the model may make several calls in one reply.
    """

    kind: Choice = "optional"
    name: str | None = None
    among: tuple[str, ...] = ()
    parallel: bool = True

    @classmethod
    def optional(cls, *among: Selectable, parallel: bool = True, validated: bool = False) -> ToolRequirement:
        """Allow the model to call tools or to answer.

        Args:
            among: The tools that it may call; all of them without one. The definitions stay what they are, so
                that a provider's cache of them stays, too. OpenAI and Gemini have this.
            parallel: Whether it may make several calls in one reply.
            validated: Have Gemini hold it to the schemas; `strict=True` of the definitions does it elsewhere.
        """
        return cls("validated" if validated else "optional", None, names_of(among), parallel)

    @classmethod
    def at_least_one(cls, *among: Selectable, parallel: bool = True) -> ToolRequirement:
        """Ask for at least one call, of these tools if any are named."""
        return cls("at_least_one", None, names_of(among), parallel)

    @classmethod
    def specific(cls, selected: Selectable, *, parallel: bool = True) -> ToolRequirement:
        """Ask for a call of this tool."""
        names = names_of([selected])
        if len(names) != 1:
            raise ToolConstraintError(", ".join(names), "a specific requirement names exactly one tool")
        return cls("specific", names[0], (), parallel)

    @classmethod
    def none(cls) -> ToolRequirement:
        """Allow the model to answer without a call alone. The definitions stay what they are."""
        return cls("none")

    def check(self, offered: Iterable[str]) -> None:
        """Raise ToolConstraintError when what is required is not among the offered names; before any request."""
        known = frozenset(offered)
        wanted = self.among if self.name is None else (self.name,)
        missing = next((name for name in wanted if name not in known), None)
        if missing is not None:
            raise ToolConstraintError(missing, "it is required, and not among the tools that are offered", tuple(known))
        if self.kind == "at_least_one" and not known:
            raise ToolConstraintError("any tool", "a call is required, and no tool is offered")

    def tool_choice(self, format: WireFormat) -> Any:
        """Return the same as the provider's parameter for the choice of a tool takes it.

        Raises:
            ValueError: The provider has no choice among some of the tools.
        """
        return formats.PROVIDERS[format].tool_choice(self.kind, self.name, self.among)

    def parameters(self, format: WireFormat) -> dict[str, Any]:
        """Return the same as parameters of the provider's request, with whether several calls may come in one reply.

        Raises:
            ValueError: The provider cannot be asked for it; the message says what to do.
        """
        provider = formats.PROVIDERS[format]
        choice = self.tool_choice(format)
        return provider.choice_parameters(choice) if self.parallel else provider.one_call(choice)
