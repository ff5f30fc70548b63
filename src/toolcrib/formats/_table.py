"""Table of the wire formats, and what is asked of it: definitions, the format of a reply, the text of a chunk.

A format is one module and one row here; no other module names one to treat it apart.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

from toolcrib.errors import FormatError, SchemaError, closest, explain_options
from toolcrib.formats._anthropic import ANTHROPIC
from toolcrib.formats._bedrock import BEDROCK
from toolcrib.formats._cohere import COHERE
from toolcrib.formats._format import Declaration, ProviderFormat, ToolFormat
from toolcrib.formats._gemini import GEMINI
from toolcrib.formats._interactions import INTERACTIONS
from toolcrib.formats._json_reading import is_object, json_shape
from toolcrib.formats._mistral import MISTRAL
from toolcrib.formats._ollama import OLLAMA
from toolcrib.formats._openai import OPENAI
from toolcrib.formats._openai_responses import OPENAI_RESPONSES
from toolcrib.formats._provider_options import NO_OPTIONS, ProviderOptions
from toolcrib.formats._sent_names import sent_schema
from toolcrib.formats._usage import Tokens
from toolcrib.formats._wire import Item
from toolcrib.jsonschema import shown_arguments, shown_value

WireFormat: TypeAlias = Literal[
    "openai", "openai_responses", "anthropic", "gemini", "mistral", "bedrock", "ollama", "cohere", "gemini_interactions"
]
"""A provider's format of requests and replies, by name."""
FormatName: TypeAlias = WireFormat | Literal["raw"]
"""A format that tools can be described in."""
Refused: TypeAlias = Literal["leave_out", "raise"]
"""The treatment of a tool that a provider cannot be offered: it is left out, or a FormatError is raised."""

_log = logging.getLogger("toolcrib.formats")
_PARTS: tuple[Set[str], ...] = (  # keys of a message, a choice, a call, an item, a block, a part
    {"role", "content"},
    {"role", "parts"},
    {"role", "tool_calls"},
    {"index", "message"},
    {"id", "function"},
    {"type", "call_id"},
    {"type", "id", "content"},
    {"type", "id", "summary"},
    {"name", "input"},
    {"content", "finishReason"},
    {"name", "arguments"},
    {"name", "args"},
    {"functionCall"},
    {"toolUse"},
)

N = TypeVar("N", bound=str)
V = TypeVar("V")


class _Raw(ToolFormat):
    """No provider's format: the three things that every definition is made from."""

    title = "raw"
    names = r".+"
    names_rule = "any characters"
    strict = False
    as_it_is = True

    def define(self, tool: Declaration) -> Item:
        return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


class _Table(dict[N, V]):
    """A table in which a name that is not there is an error that lists the names."""

    def __missing__(self, name: object) -> V:
        raise ValueError(f"there is no format `{name}`. {closest(str(name), map(str, self))}")


PROVIDERS: Mapping[WireFormat, ProviderFormat] = MappingProxyType(
    _Table[WireFormat, ProviderFormat](
        {  # the last one that recognises a reply is its format: Mistral's replies have the shape of OpenAI's
            "openai": OPENAI,
            "openai_responses": OPENAI_RESPONSES,
            "anthropic": ANTHROPIC,
            "gemini": GEMINI,
            "mistral": MISTRAL,
            "bedrock": BEDROCK,
            "ollama": OLLAMA,
            "cohere": COHERE,
            "gemini_interactions": INTERACTIONS,
        }
    )
)
"""The rules of each provider's wire format, by name."""
FORMATS: Mapping[FormatName, ToolFormat] = MappingProxyType(
    _Table[FormatName, ToolFormat]({**PROVIDERS, "raw": _Raw()}),
)
"""The formats that tools can be described in: those of the providers, and `raw`."""


def detected(reply: object, among: Mapping[N, ProviderFormat] = PROVIDERS) -> N:
    """Return the format of a reply, or of a chunk of a streamed one, by the SDK that made it or by its shape.

    Mistral's replies have the shape of OpenAI's: one that is a plain dict is recognised by the name of the model.

    Args:
        reply: An SDK's object, or the same as a dict.
        among: The formats that it may be in.

    Raises:
        TypeError: It is neither an SDK's object nor a dict.
        ValueError: It has the shape of no format.
    """
    if not is_object(reply):
        module = f"{type(reply).__module__}."
        for name, format in among.items():
            if format.sdk and module.startswith(f"{format.sdk}."):
                return name
    shape = json_shape(reply)
    for name, format in reversed([*among.items()]):
        if format.recognises(shape):
            return name
    refuse_part(reply)
    keys = f"the keys {', '.join(map(str, shape))}, which no provider's reply has" if shape else "no keys"
    raise ValueError(f"the reply has {keys}; say which format it is in: decode(..., format='openai')")


def refuse_part(reply: object) -> None:
    """Raise ValueError for a part of a reply, such as its message: its calls would be missed."""
    try:
        shapes = [
            json_shape(shape) for shape in (cast("Iterable[object]", reply) if isinstance(reply, list) else (reply,))
        ]
    except TypeError:
        return
    part = next(
        (shape for shape in shapes if set(shape) == {"message"} or any(keys <= shape.keys() for keys in _PARTS)), None
    )
    if part is not None:
        raise ValueError(
            f"what has the keys {', '.join(map(str, part))} is a part of a reply: give the whole of what the client "
            "returned, such as `response`, and not `response.choices[0].message` or `response.output`"
        )


def text_delta(chunk: object, format: WireFormat | None = None) -> str:
    """Return the text that a chunk adds to the answer; empty for one that adds none: calls, thoughts, usage.

    Args:
        chunk: A chunk or event as the provider's SDK gives it, or the same as a dict.
        format: The wire format; detected when None, and the text is empty for a chunk of no known shape.
    """
    try:
        name = format or detected(chunk)
    except ValueError:
        return ""
    return PROVIDERS[name].text_delta(json_shape(chunk))


def tokens_in(reply: object, format: WireFormat, before: Tokens | None = None) -> Tokens | None:
    """Return the tokens that a reply or a chunk says were used, `before` being what earlier chunks of the reply said.

    It is None for one that says nothing.
    """
    keys = PROVIDERS[format].usage
    try:
        return keys.read(json_shape(reply), before) if keys.may_be_in(reply) else None
    except TypeError:  # no reply at all, which is for `decode` to refuse
        return None


class Definable(Protocol):
    """The source of a definition: a tool, or a toolset's entry of it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def return_schema(self) -> Mapping[str, Any] | None: ...
    @property
    def provider(self) -> ProviderOptions: ...


@explain_options()
def definition(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    format: FormatName,
    strict: bool = False,
    returns: Mapping[str, Any] | None = None,
    options: ProviderOptions | None = None,
) -> dict[str, Any]:
    """Return the definition of one tool as a provider wants it.

    Args:
        name: The name that the model calls it by.
        description: Its purpose.
        parameters: The JSON schema of its arguments, an object.
        format: The provider, or `raw` for the three as they are.
        strict: Have the provider hold the model to the schema. What its strict mode cannot keep of the schema goes into
            descriptions; where every property has to be required, an optional one accepts null, and
            `without_filler` takes those nulls out of the arguments again.
        returns: The JSON schema of the result, which the model is shown: in its place, or else in the description.
        options: The other options of the provider.

    Raises:
        FormatError: The provider refuses the name, has no strict mode, or cannot keep this schema strictly.
        SchemaTooLarge: The schema comes to too much when it is written out.
    """
    rules, options = FORMATS[format], options or NO_OPTIONS
    rules.check_tool(name, strict)
    try:
        return _defined(rules, Declaration(name, description, parameters, strict, returns, options))
    except SchemaError:  # it says what is wrong itself
        raise
    except (AttributeError, KeyError, TypeError) as error:  # a schema of another party may be anything
        problem = f"its schema is not a JSON schema ({error}); correct it, or leave the tool out"
        raise FormatError(name, rules.title, problem) from error


def _defined(format: ToolFormat, tool: Declaration) -> dict[str, Any]:
    """Return the definition of a tool, with its schemas as the provider takes them."""
    description, parameters, returns = tool.description, tool.parameters, tool.returns
    if not format.as_it_is:
        parameters = shown_arguments(tool.name, parameters)
    parameters = sent_schema(parameters, format.sent_names(parameters))
    if returns is not None and not format.returns:
        text = f"Returns JSON of this schema: {json.dumps(returns, ensure_ascii=False)}"
        description, returns = f"{description}\n\n{text}".strip(), None
    elif returns is not None and not format.as_it_is:
        returns = shown_value(tool.name, returns)
    return format.define(replace(tool, description=description, parameters=parameters, returns=returns))


@explain_options()
def definitions(
    tools: Iterable[Definable],
    format: FormatName,
    strict: bool = False,
    return_schemas: bool = False,
    refused: Refused | Literal["not_strict"] = "leave_out",
) -> list[dict[str, Any]]:
    """Return the provider's `tools` parameter for these tools.

    Args:
        tools: Tools, a toolset, or what its `definitions()` returns.
        format: The provider.
        strict: Have the provider hold the model to the schemas.
        return_schemas: Show the model what the tools return, as far as that is known.
        refused: The treatment of a tool that the provider cannot be offered, or with which strict ones are more than a
            request takes: it is left out, and an error in the log of `toolcrib.formats` names it and what would mend
            it; or that error is raised. With `not_strict` it is offered without strict mode where it can be, and the
            log has a line of the level INFO.

    Raises:
        FormatError: Tools are refused, and `refused` says to raise it.
        SchemaError: As above, for a tool without a schema, or with one that is too large.
        ValueError: There is no such format.
    """
    written: list[dict[str, Any]] = []
    strictly: list[dict[str, Any]] = []
    known = FORMATS[format]

    def made_of(tool: Definable, strict: bool) -> dict[str, Any]:
        shown = return_schemas or (known.returns and tool.provider.output_schema)
        returns = tool.return_schema if shown else None
        schema = definition(tool.name, tool.description, tool.parameters, format, strict, returns, tool.provider)
        if strict:
            known.check_strict(strictly, schema)
            strictly.append(schema)
        return schema

    for tool in tools:
        try:
            try:
                written.append(made_of(tool, strict))
            except FormatError as error:
                if not strict or refused != "not_strict" or not known.strict:
                    raise
                written.append(made_of(tool, False))
                _log.info("%s. It is offered without strict mode.", str(error).removesuffix("."))
        except (FormatError, SchemaError) as error:
            if refused == "raise" or (strict and not known.strict):
                raise
            _log.error("%s. It is left out of the definitions.", str(error).removesuffix("."))
    return known.wrap(written)
