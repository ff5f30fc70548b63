"""Definitions of the tools of a toolset, for a model: as values, or in a wire format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import toolcrib.formats as formats  # its names are loaded when a format is asked for
from toolcrib.errors import UnknownTool
from toolcrib.toolsets._members import define
from toolcrib.toolsets._select import Definition, ToolAvailability, names_of

if TYPE_CHECKING:
    from toolcrib.formats import FormatName, MistralTool, OpenAITool
    from toolcrib.toolsets._toolset import Toolset

__all__ = ["Definitions", "DefinitionsOf"]


class DefinitionsOf:
    """Call it for the definitions of one toolset."""

    __slots__ = ("_toolset",)

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset

    @overload
    def __call__(
        self,
        available: ToolAvailability | None = None,
        *,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[Definition]: ...

    @overload
    def __call__(
        self,
        available: ToolAvailability | None = None,
        *,
        format: Literal["openai"],
        strict: bool = False,
        return_schemas: bool = False,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[OpenAITool]: ...

    @overload
    def __call__(
        self,
        available: ToolAvailability | None = None,
        *,
        format: Literal["mistral"],
        strict: bool = False,
        return_schemas: bool = False,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[MistralTool]: ...

    @overload
    def __call__(
        self,
        available: ToolAvailability | None = None,
        *,
        format: FormatName,
        strict: bool = False,
        return_schemas: bool = False,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[Any]: ...

    def __call__(
        self,
        available: ToolAvailability | None = None,
        *,
        format: FormatName | None = None,
        strict: bool = False,
        return_schemas: bool = False,
        describe: Mapping[Any, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> list[Any]:
        """Return the definitions of the tools that are offered, in order.

        Type checkers take them for what the provider's SDK declares; the SDKs of some declare more keys with each
        release, and there a definition is `Any`.

        Args:
            available: Which tools; the default ones when None.
            format: The wire format, for what the provider's `tools` parameter takes; values when None.
            strict: Have the provider hold the model to the schemas; decode the replies with `strict=True`, too.
            return_schemas: Show the model what the tools return, as far as that is known.
            describe: Descriptions in place of the tools' own, by selector or name; the last one for a tool wins.
            revealed: The names that were found in the run (`Run.revealed`). They come last and in the order they
                were found, so that what was sent before stays the beginning of what is sent now.

        Raises:
            UnknownTool: A description is given for a tool that is not in it.
            ToolConstraintError: `available` names one that is not.
            FormatError: The provider refuses a name, has no strict mode, or cannot keep a schema strictly.
        """
        offered = _described(self._toolset, available, describe or {}, revealed)
        return offered if format is None else formats.definitions(offered, format, strict, return_schemas)


class Definitions:
    """The descriptor that lets a toolset, and a toolset class, be asked."""

    def __get__(self, item: Toolset | None, owner: type[Toolset]) -> DefinitionsOf:
        return DefinitionsOf(owner() if item is None else item)


def _described(
    toolset: Toolset, available: ToolAvailability | None, describe: Mapping[Any, str], revealed: Iterable[str]
) -> list[Definition]:
    offered = toolset.offered(available)
    texts = {name: text for key, text in describe.items() for name in names_of([key])}
    unknown = next((name for name in texts if name not in toolset), None)
    if unknown is not None:
        raise UnknownTool(unknown, tuple(toolset.names()))
    found = [name for name in revealed if name in toolset and name not in offered]
    names = [*(entry.name for entry in toolset if entry.name in offered), *found]
    return [define(toolset[name], texts.get(name)) for name in names]
