"""The table of formats, and the two functions that read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from toolcrib.formats._anthropic import ANTHROPIC
from toolcrib.formats._format import ProviderFormat
from toolcrib.formats._gemini import GEMINI
from toolcrib.formats._mistral import MISTRAL
from toolcrib.formats._openai import OPENAI
from toolcrib.formats._raw import RAW

__all__ = ["FORMATS", "Definable", "FormatName", "definition", "definitions"]

FormatName: TypeAlias = Literal["openai", "anthropic", "gemini", "mistral", "raw"]

FORMATS: Mapping[FormatName, ProviderFormat] = MappingProxyType(
    {"openai": OPENAI, "anthropic": ANTHROPIC, "gemini": GEMINI, "mistral": MISTRAL, "raw": RAW}
)


class Definable(Protocol):
    """What a definition is made from; a tool is one, and a toolset's entry of it, too."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> dict[str, Any]: ...


def definition(
    name: str, description: str, parameters: Mapping[str, Any], format: FormatName, strict: bool = False
) -> dict[str, Any]:
    """Return the definition of one tool as a provider wants it.

    Args:
        name: What the model calls it.
        description: What it is for.
        parameters: The JSON schema of its arguments, an object.
        format: The provider, or `raw` for the three as they are.
        strict: Have the provider hold the model to the schema.

    Raises:
        FormatError: The provider refuses the name, has no strict mode, or cannot keep this schema strictly.
    """
    made = FORMATS[format]
    made.check(name, strict)
    return made.define(name, description, parameters, strict)


def definitions(tools: Iterable[Definable], format: FormatName, strict: bool = False) -> list[dict[str, Any]]:
    """Return what the provider's `tools` parameter takes for these tools; raises as `definition` does."""
    made = [definition(tool.name, tool.description, tool.parameters, format, strict) for tool in tools]
    return FORMATS[format].wrap(made)
