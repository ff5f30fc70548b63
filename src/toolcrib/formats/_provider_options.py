"""Options of a tool that providers take beside its name, description and schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, cast

from toolcrib.errors import explain_options

_DIGITS = "0123456789"

Caller: TypeAlias = Literal[
    "direct", "programmatic", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"
]
"""A caller of a tool, in the providers' words: the model directly, or programs in the provider's sandbox."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar that the text of a free-text tool has to fit."""

    syntax: Literal["lark", "regex"]
    definition: str


@explain_options()
@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """Options of one tool. None leaves the choice to the provider, and a provider without the option is sent nothing.

    Attributes:
        defer_loading: Leave the definition out of the prompt until the provider's tool search finds it. OpenAI
            Responses, Anthropic, Google Interactions.
        allowed_callers: Who may call it: the model itself (`direct`), or the programs that it writes in the provider's
            own sandbox; the model itself alone when left out. A call by another is refused, and a provider that cannot
            keep this is not offered the tool. OpenAI Responses, Anthropic.
        input_examples: Arguments of good calls. Anthropic.
        cache_control: Seconds to live of a cache that ends with this tool. Anthropic.
        eager_input_streaming: Stream arguments before their JSON is checked. Anthropic.
        free_text: The model writes plain text, or text of a grammar, and it becomes the tool's one argument. OpenAI
            Chat and Responses; for others the tool is a function with that argument.
        output_schema: Show the model the schema of the result, where a definition has a place for it. OpenAI Responses,
            Gemini.
        openapi_schema: Write the schema in the subset of OpenAPI that older SDKs and models take. Gemini.
    """

    defer_loading: bool | None = None
    allowed_callers: tuple[Caller, ...] | None = None
    input_examples: tuple[Mapping[str, Any], ...] | None = None
    cache_control: Literal["5m", "1h"] | None = None
    eager_input_streaming: bool | None = None
    free_text: Literal[True] | Grammar | None = None
    output_schema: bool | None = None
    openapi_schema: bool | None = None

    def permits(self, caller: str) -> bool:
        """Return whether this caller may call the tool; the model itself alone where nothing else is said.

        Versions of one kind of program count as one.
        """
        allowed = self.allowed_callers
        if allowed is None:
            return caller == "direct"
        return caller.rstrip(_DIGITS) in [kind.rstrip(_DIGITS) for kind in allowed]

    def over(self, other: ProviderOptions) -> ProviderOptions:
        """Return these options, and those of `other` where these leave the choice."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in options.items() if value is not None})


NO_OPTIONS = ProviderOptions()
"""No options: a provider is asked for nothing besides the schema."""


def text_parameter(parameters: Mapping[str, Any]) -> str | None:
    """Return the one argument that a free text becomes; None for a tool that takes others."""
    properties: Mapping[str, Any] = parameters.get("properties") or {}
    names = [name for name in properties if name in parameters.get("required", ())] or [*properties]
    part: Any = properties.get(names[0]) if len(names) == 1 else None
    return names[0] if isinstance(part, Mapping) and cast("Mapping[str, Any]", part).get("type") == "string" else None
