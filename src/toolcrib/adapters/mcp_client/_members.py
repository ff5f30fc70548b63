"""What a server has, as tools of ours: its tools, its resources and templates, its prompts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from toolcrib.adapters.mcp_client._checking import checks_of
from toolcrib.adapters.mcp_client._link import Link
from toolcrib.adapters.mcp_client._names import resource_name, tool_name
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._values import (
    RemoteTool,
    messages_of,
    prompt_of,
    read_as_json,
    resource_of,
    result_of,
    texts_of,
)
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.tools import BaseTool, Instruction, Tool, ToolOptions

__all__ = ["Member", "members_of"]

_TEXT: Mapping[str, Any] = {"type": "string"}
_BOOLS: Mapping[bool, Any] = {True: {}, False: {"not": {}}}
_NAMES: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT, "default": {}}


class Member(BaseTool):
    """One thing that a server has.

    Attributes:
        about: What the server says of it.
        names: Every name by which it may be told in an option.
        listed: Whether the server has it now.
    """

    about: RemoteTool
    names: frozenset[str]

    def __init__(self, link: Link, options: Options) -> None:
        self._link, self._options = link, options
        self.listed = True

    def tool(self) -> Tool[..., Any]:
        """Return it as one of ours, with the gates that the host wants and none that the server could take away.

        Raises:
            ServerError: What the server says of it makes no sense.
        """
        try:
            return self._made()
        except (AttributeError, TypeError, ValueError) as error:  # a schema may be anything
            problem = f"describes its tool `{self.about.name}` in a way that cannot be read: {error}"
            raise ServerError(self._link.server, problem) from error

    def _made(self) -> Tool[..., Any]:
        about, options = self.about, self._options
        given = self._given(options.return_schemas)
        text = self._given(options.descriptions)
        spec = ToolSpec.from_schema(
            self._call,
            about.parameters,
            name=options.prefix + about.name,
            description=about.description if text is None else text,
            returns=about.returns if given is None else given,
            check=checks_of(about.name, about.parameters),
        )
        made: Tool[..., Any] = Tool(
            spec, ToolOptions(tags=about.tags(), requires_approval=options.asks(about, self.names)), source=self
        )
        made.origin = f"{self.where()} of the MCP server `{self._link.server}`"
        return made

    def where(self) -> str:
        """Return what it is on the server, for messages."""
        return f"the tool `{self.about.name}`"

    def is_available(self, ctx: RunContext[Any]) -> bool:
        """Return whether the server still has it."""
        return self.listed

    def get_definition(self) -> Mapping[str, Any]:
        """Return what the server says of its arguments and its hints; its words for models may change as they like."""
        return self.about.definition()

    def get_instruction(self, ctx: RunContext[Any]) -> Instruction | None:
        """Return what the server says about its own use, if the host lets it."""
        text = self._link.instructions if self._options.include_instructions else None
        return Instruction(f"mcp: {self._link.server}", text) if text else None

    async def _call(self, /, **arguments: Any) -> Any:
        value = await self.run(arguments, ambient_context())
        return value if self._given(self._options.return_schemas) is None else read_as_json(value)

    @abstractmethod
    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        """Ask the server."""

    def _given(self, table: Mapping[str, Any]) -> Any:
        return next((table[name] for name in self.names if name in table), None)


class ToolMember(Member):
    """A tool."""

    reports = True

    def __init__(self, link: Link, options: Options, listed: types.Tool) -> None:
        super().__init__(link, options)
        self._name, hints = listed.name, listed.annotations or types.ToolAnnotations()
        self.about = RemoteTool(
            tool_name(listed.name),
            link.server,
            "tool",
            listed.description or "",
            _spelt_out(listed.input_schema),
            listed.output_schema,
            listed.title or hints.title,
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )
        self.names = frozenset({listed.name, self.about.name})

    def where(self) -> str:
        return f"the tool `{self._name}`"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._link.call_tool(self._name, arguments, ctx)
        if result.is_error:
            raise RemoteToolError(self._link.server, texts_of(result))
        return result_of(result)


class ResourceMember(Member):
    """A resource, read without arguments."""

    def __init__(self, link: Link, options: Options, listed: types.Resource) -> None:
        super().__init__(link, options)
        self._uri, name = listed.uri, resource_name("read", listed.name, listed.uri)
        text = _described("Read", listed.title or listed.name, listed.uri, listed.description)
        schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
        self.about = RemoteTool(name, link.server, "resource", text, schema, title=listed.title, read_only=True)
        self.names = frozenset({name, listed.name, listed.uri})

    def where(self) -> str:
        return f"the resource {self._uri}"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        return resource_of(await self._link.read_resource(self._uri, ctx))


class TemplateMember(Member):
    """A template of resources; the variables of its URI are the arguments."""

    def __init__(self, link: Link, options: Options, listed: types.ResourceTemplate) -> None:
        super().__init__(link, options)
        self._template = UriTemplate.parse(listed.uri_template)
        name = resource_name("query", listed.name, listed.uri_template)
        text = _described("Read", listed.title or listed.name, listed.uri_template, listed.description)
        optional, variables = self._template.query_variable_names, self._template.variables
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                part.name: {"type": "array", "items": _TEXT} if part.explode else _TEXT for part in variables
            },
            "required": [part.name for part in variables if part.name not in optional],
            "additionalProperties": False,
        }
        self.about = RemoteTool(name, link.server, "template", text, schema, title=listed.title, read_only=True)
        self.names = frozenset({name, listed.name, listed.uri_template})

    def where(self) -> str:
        return f"the resource template {self._template}"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        uri = self._template.expand(arguments)
        return resource_of(await self._link.read_resource(uri, ctx))


class PromptList(Member):
    """The list of a server's prompts."""

    def __init__(self, link: Link, options: Options) -> None:
        super().__init__(link, options)
        schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
        text = f"List the prompts of the server {link.server}: texts that it has ready, with the arguments they take."
        self.about = RemoteTool("list_prompts", link.server, "prompt", text, schema)
        self.names = frozenset({"list_prompts"})

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        return [asdict(prompt_of(prompt)) for prompt in await self._link.list_prompts()]


class PromptText(Member):
    """One prompt, filled in."""

    def __init__(self, link: Link, options: Options) -> None:
        super().__init__(link, options)
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"name": _TEXT, "arguments": _NAMES},
            "required": ["name"],
            "additionalProperties": False,
        }
        text = f"Return the messages of a prompt of the server {link.server}, with its arguments filled in."
        self.about = RemoteTool("get_prompt", link.server, "prompt", text, schema)
        self.names = frozenset({"get_prompt"})

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._link.get_prompt(arguments["name"], arguments.get("arguments") or {}, ctx)
        return [{"role": message.role, "content": message.content} for message in messages_of(result.messages)]


def members_of(link: Link, options: Options) -> list[Member]:
    """Return everything that a server has now and the host wants."""
    has = link.listing
    members: list[Member] = [ToolMember(link, options, tool) for tool in has.tools]
    if options.include_resources is not False:
        members += [ResourceMember(link, options, resource) for resource in has.resources]
        members += [made for template in has.templates if (made := _template(link, options, template)) is not None]
    if options.include_prompts:
        members += [PromptList(link, options), PromptText(link, options)]
    return members


def _template(link: Link, options: Options, listed: types.ResourceTemplate) -> TemplateMember | None:
    try:
        return TemplateMember(link, options, listed)
    except InvalidUriTemplate:  # nobody could fill it in
        return None


def _spelt_out(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with an object for each property, which JSON Schema lets be a bool as well."""
    parts: Any = schema.get("properties")
    if not isinstance(parts, dict):
        return schema
    named = cast("dict[str, Any]", parts)
    spelt = {name: _BOOLS[part] if isinstance(part, bool) else part for name, part in named.items()}
    return {**schema, "properties": spelt}


def _described(verb: str, name: str, place: str, text: str | None) -> str:
    return f"{verb} {name} ({place})" + (f": {text}" if text else ".")
