"""Methods that a toolset class answers as the toolset it would make; one of them, `definitions`, has overloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

import toolcrib.formats as formats  # its names are loaded when a format is asked for
from toolcrib import toolsets
from toolcrib.errors import UnknownTool, refuse_unknown_options
from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import define, offered_names
from toolcrib.toolsets._names import names_of

if TYPE_CHECKING:
    from toolcrib.formats import FormatName, MistralTool, OpenAITool, ProviderOptions, Refused
    from toolcrib.toolsets._toolset import Toolset

_WORDS = {
    **dict.fromkeys(("client", "for_", "kind", "provider", "sdk"), "format"),
    "names": "ToolAvailability.only(...)",
}
P = ParamSpec("P")
R = TypeVar("R")


class class_or_instance(Generic[P, R]):
    """Allow a method to be called on a class too, where it means an object made without arguments."""

    def __init__(self, fn: Callable[Concatenate[Any, P], R]) -> None:
        self._fn = fn
        self.__doc__ = fn.__doc__

    def __get__(self, item: object | None, owner: type) -> Callable[P, R]:
        return partial(self._fn, owner() if item is None else item)


class DefinitionKeywords(TypedDict, total=False):
    """The keywords of `definitions`.

    Attributes:
        strict: Have the provider hold the model to the schemas; decode the replies with `strict=True`, too.
        return_schemas: Show the model what the tools return, as far as that is known.
        describe: Descriptions in place of the tools' own, by selector or name; the last one for a tool wins.
        revealed: The names that were found in the run (`Run.revealed`). They come last and in the order they were
            found, so that what was sent before stays the beginning of what is sent now.
        options: The options of the provider for this request, by selector or name; over the tool's own options.
        refused: `leave_out` a tool that the provider cannot be offered, with an error in the log that names it; or
            `raise` that error; or `not_strict` offers it without strict mode, where that is all that is in the way.
    """

    strict: bool
    return_schemas: bool
    describe: Mapping[Any, str] | None
    revealed: Iterable[str]
    options: Mapping[Any, ProviderOptions] | None
    refused: Refused | Literal["not_strict"]


class DefinitionsOf:
    """Call it for the definitions of the tools of one toolset."""

    __slots__ = ("_toolset",)

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    @overload
    def __call__(
        self,
        available: toolsets.ToolAvailability | None = None,
        *,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[toolsets.Definition]: ...

    @overload
    def __call__(
        self,
        available: toolsets.ToolAvailability | None = None,
        *,
        format: Literal["openai"],
        **how: Unpack[DefinitionKeywords],
    ) -> list[OpenAITool]: ...

    @overload
    def __call__(
        self,
        available: toolsets.ToolAvailability | None = None,
        *,
        format: Literal["mistral"],
        **how: Unpack[DefinitionKeywords],
    ) -> list[MistralTool]: ...

    @overload
    def __call__(
        self,
        available: toolsets.ToolAvailability | None = None,
        *,
        format: FormatName,
        **how: Unpack[DefinitionKeywords],
    ) -> list[Any]: ...

    def __call__(
        self,
        available: toolsets.ToolAvailability | None = None,
        *,
        format: FormatName | None = None,
        **how: Unpack[DefinitionKeywords],
    ) -> list[Any]:
        """Return the definitions of the tools that are offered, in order.

        Type checkers take them for what the provider's SDK declares; the SDKs of some declare more keys with each
        release, and there a definition is `Any`.

        Args:
            available: Which tools; the default ones when None.
            format: The wire format, for what the provider's `tools` parameter takes; values when None.
            how: See `DefinitionKeywords`.

        Raises:
            TypeError: There is no such keyword.
            ValueError: Not all tools are known yet: the toolset has to be opened.
            UnknownTool: A description or an option is given for a tool that is not in it.
            ToolConstraintError: `available` names one that is not.
            FormatError: The provider refuses a tool, and `refused` says to raise it.
        """
        refuse_unknown_options("definitions()", how, DefinitionKeywords.__annotations__ | {"format": ""}, _WORDS)
        self._toolset.require_open()
        offered = _offered(self._toolset.entries, available, how)
        if format is None:
            return [define(entry) for entry in offered]
        strict, returns = how.get("strict", False), how.get("return_schemas", False)
        return formats.definitions(offered, format, strict, returns, how.get("refused", "leave_out"))


class Definitions:
    """The descriptor of `definitions`; like a method of `class_or_instance`, but its overloads stay."""

    def __get__(self, item: Any, owner: type[Any]) -> DefinitionsOf:
        return DefinitionsOf(owner() if item is None else item)


def _offered(
    entries: Mapping[str, ToolEntry], available: toolsets.ToolAvailability | None, how: DefinitionKeywords
) -> list[ToolEntry]:
    """Return the entries that are offered, with the descriptions and options of this request."""
    offered = offered_names(entries, available)
    texts = {name: text for key, text in (how.get("describe") or {}).items() for name in names_of([key])}
    options = {name: asked for key, asked in (how.get("options") or {}).items() for name in names_of([key])}
    unknown = next((name for name in [*texts, *options] if name not in entries), None)
    if unknown is not None:
        raise UnknownTool(unknown, tuple(entries))
    found = [name for name in how.get("revealed", ()) if name in entries and name not in offered]
    return [
        replace(
            entry,
            description_override=texts.get(entry.name, entry.description_override),
            provider=options[entry.name].over(entry.provider) if entry.name in options else entry.provider,
        )
        for entry in (entries[name] for name in [*(name for name in entries if name in offered), *found])
    ]
