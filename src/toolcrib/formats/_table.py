"""The tables of formats, and the functions that read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from toolcrib.errors import closest
from toolcrib.formats._anthropic import ANTHROPIC
from toolcrib.formats._format import ProviderFormat, ToolFormat
from toolcrib.formats._gemini import GEMINI
from toolcrib.formats._mistral import MISTRAL
from toolcrib.formats._openai import OPENAI
from toolcrib.formats._openai_responses import OPENAI_RESPONSES
from toolcrib.formats._raw import RAW

__all__ = ["FORMATS", "PROVIDERS", "Definable", "FormatName", "ProviderName", "definition", "definitions"]

ProviderName: TypeAlias = Literal["openai", "openai_responses", "anthropic", "gemini", "mistral"]
FormatName: TypeAlias = ProviderName | Literal["raw"]

N = TypeVar("N", bound=str)
V = TypeVar("V")


class _Named(dict[N, V]):
    """A table in which a name that is not there is an error that says which are."""

    def __missing__(self, name: object) -> V:
        raise ValueError(f"there is no format `{name}`. {closest(str(name), map(str, self))}")


PROVIDERS: Mapping[ProviderName, ProviderFormat] = MappingProxyType(
    _Named[ProviderName, ProviderFormat](
        {
            "openai": OPENAI,
            "openai_responses": OPENAI_RESPONSES,
            "anthropic": ANTHROPIC,
            "gemini": GEMINI,
            "mistral": MISTRAL,
        }
    )
)
FORMATS: Mapping[FormatName, ToolFormat] = MappingProxyType(
    _Named[FormatName, ToolFormat]({**PROVIDERS, "raw": RAW}),
)


class Definable(Protocol):
    """What a definition is made from; a tool is one, and a toolset's entry of it, too."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def return_schema(self) -> Mapping[str, Any] | None: ...


def definition(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    format: FormatName,
    strict: bool = False,
    returns: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the definition of one tool as a provider wants it.

    Args:
        name: What the model calls it.
        description: What it is for.
        parameters: The JSON schema of its arguments, an object.
        format: The provider, or `raw` for the three as they are.
        strict: Have the provider hold the model to the schema. What its strict mode cannot keep of the schema goes into
            descriptions; where every property has to be required, an optional one accepts null, and
            `without_filler` takes those nulls out of the arguments again.
        returns: The JSON schema of the result, to be told to the model: in its place, or else in the description.

    Raises:
        FormatError: The provider refuses the name, has no strict mode, or cannot keep this schema strictly.
    """
    made = FORMATS[format]
    made.check_tool(name, strict)
    if returns is not None and not made.returns:
        text = f"Returns JSON of this schema: {json.dumps(returns, ensure_ascii=False)}"
        description, returns = f"{description}\n\n{text}".strip(), None
    return made.define(name, description, parameters, strict, returns)


def definitions(
    tools: Iterable[Definable], format: FormatName, strict: bool = False, return_schemas: bool = False
) -> list[dict[str, Any]]:
    """Return what the provider's `tools` parameter takes for these tools; raises as `definition` does.

    Args:
        tools: Tools, a toolset, or what its `definitions()` returns.
        format: The provider.
        strict: Have the provider hold the model to the schemas.
        return_schemas: Tell the model what the tools return, as far as that is known.
    """
    made = [
        definition(
            tool.name, tool.description, tool.parameters, format, strict, tool.return_schema if return_schemas else None
        )
        for tool in tools
    ]
    if strict:
        FORMATS[format].check_strict(made)
    return FORMATS[format].wrap(made)
