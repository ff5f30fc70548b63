"""Members of a server as tools: its tools, its resources and templates, its prompts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from typing import Any, cast

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from toolcrib.adapters.mcp_client._member import Member
from toolcrib.adapters.mcp_client._options import Options
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._values import (
    RemoteTool,
    messages_of,
    prompt_of,
    resource_of,
    result_of,
    texts_of,
    warnings_in,
)
from toolcrib.calls import ToolCall
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Run
from toolcrib.schema import RunContext
from toolcrib.tools import (
    FoundValues,
    PromptOffer,
    ResourceListener,
    ResourceOffer,
    is_for_apps,
)

_log = logging.getLogger("toolcrib.mcp")
_MOST_NAMED = 5  # that get a number, in a line of the log
_TEXT: Mapping[str, Any] = {"type": "string"}
_BOOLS: Mapping[bool, Any] = {True: {}, False: {"not": {}}}
_NOT_A_TOOL = re.compile(r"[^A-Za-z0-9_-]")
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
_NAMES: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT, "default": {}}


class ToolMember(Member):
    """A tool."""

    reports = True

    def __init__(self, remote: RemoteServer, options: Options, listed: types.Tool) -> None:
        super().__init__(remote, options)
        listed = self._known("tool", listed)
        self.warned = warnings_in(listed.meta)
        self._name, hints = listed.name, listed.annotations or types.ToolAnnotations()
        self._listed = listed
        self.about = RemoteTool(
            _tool_name(listed.name),
            remote.name,
            "tool",
            listed.description or "",
            _with_object_properties(listed.input_schema),
            listed.output_schema,
            listed.title or hints.title,
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )
        self.names = frozenset({listed.name, self.about.name})

    def label(self) -> str:
        return f"the tool `{self._name}`"

    def get_listing(self) -> Mapping[str, Any]:
        """Return the server's listing, but for the parts that the host replaces."""
        listed = self._listed
        returns = listed.output_schema if self._override(self._options.return_schemas) is None else None
        listing: Mapping[str, Any] = {
            "title": listed.title,
            "icons": listed.icons and [icon.model_dump(by_alias=True, exclude_none=True) for icon in listed.icons],
            "annotations": listed.annotations and listed.annotations.model_dump(by_alias=True, exclude_none=True),
            "_meta": listed.meta,
            "inputSchema": listed.input_schema,
            "outputSchema": returns,
        }
        return {name: value for name, value in listing.items() if value is not None}

    def tags(self) -> frozenset[str]:
        """Return the hints as tags, and `task` where the server wants calls to be tasks."""
        wants_tasks = self._listed.execution is not None and self._listed.execution.task_support == "required"
        return self.about.tags() | {"task"} if wants_tasks else self.about.tags()

    def is_for_models(self) -> bool:
        """Return whether models may call it, and not the pages of MCP Apps alone."""
        return not is_for_apps({"_meta": self._listed.meta})

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._remote.call_tool(self._name, arguments, ctx)
        value = self.keep_original(ctx, None if result.is_error else result_of(result), result)
        warned, run = warnings_in(result.meta), cast("Run | None", None if ctx is None else ctx.run)
        if ctx is not None and run is not None and warned.labels:
            run.read_input(ModelInput("warning", warned.labels, request=ToolCall(self._name, {}, ctx.call_id)))
        if result.is_error:
            raise RemoteToolError(self._remote.name, texts_of(result))
        return value


class _ResourceOffering(Member):
    """The common part of resources and templates: clients see them as resources, and may subscribe to them."""

    _uri: str
    _listed_as: types.Resource | types.ResourceTemplate

    def is_for_models(self) -> bool:
        return self._options.resource_tools

    def get_offer(self) -> ResourceOffer:
        listing = self._listed_as.model_dump(
            by_alias=True, mode="json", exclude_none=True, exclude={"uri", "uri_template"}
        )
        return ResourceOffer(self._uri, self._listed_as.mime_type, {"description": None, **listing})

    async def complete(self, argument: str, typed: str, others: Mapping[str, str]) -> FoundValues:
        """Return the server's completions."""
        reference = types.ResourceTemplateReference(uri=self._uri)
        return await self._completed(reference, argument, typed, others)

    def listen(self, listener: ResourceListener) -> None:
        self._remote.listeners.add(listener)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to a resource; a server that announces no updates is left alone."""
        try:
            await self._remote.subscribe(uri, self._remote.announce)
        except (RemoteToolError, ServerError) as error:
            _log.info("%s: updates of %s do not arrive: %s", self._remote.name, uri, error)

    async def unsubscribe(self, uri: str) -> None:
        await self._remote.unsubscribe(uri, self._remote.announce)


class ResourceMember(_ResourceOffering):
    """A resource, read without arguments."""

    def __init__(self, remote: RemoteServer, options: Options, listed: types.Resource) -> None:
        super().__init__(remote, options)
        self._listed_as = listed = self._known("resource", listed)
        self._uri, name = listed.uri, _resource_name("read", listed.name, listed.uri)
        text = _description_of("Read", listed.title or listed.name, listed.uri, listed.description)
        self.about = RemoteTool(name, remote.name, "resource", text, _schema({}), title=listed.title, read_only=True)
        self.names = frozenset({name, listed.name, listed.uri})

    def label(self) -> str:
        return f"the resource {self._uri}"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._remote.read_resource(self._uri, ctx)
        return self.keep_original(ctx, resource_of(result), result)


class TemplateMember(_ResourceOffering):
    """A template of resources; the variables of its URI are the arguments."""

    def __init__(self, remote: RemoteServer, options: Options, listed: types.ResourceTemplate) -> None:
        super().__init__(remote, options)
        listed = self._known("template", listed)
        self._template = UriTemplate.parse(listed.uri_template)
        self._uri, self._listed_as = listed.uri_template, listed
        name = _resource_name("query", listed.name, listed.uri_template)
        text = _description_of("Read", listed.title or listed.name, listed.uri_template, listed.description)
        optional, variables = self._template.query_variable_names, self._template.variables
        schema = _schema(
            {part.name: {"type": "array", "items": _TEXT} if part.explode else _TEXT for part in variables},
            [part.name for part in variables if part.name not in optional],
        )
        self.about = RemoteTool(name, remote.name, "template", text, schema, title=listed.title, read_only=True)
        self.names = frozenset({name, listed.name, listed.uri_template})

    def label(self) -> str:
        return f"the resource template {self._template}"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._remote.read_resource(self._template.expand(arguments), ctx)
        return self.keep_original(ctx, resource_of(result), result)


class PromptMember(Member):
    """A prompt, which people choose, and models do not."""

    def __init__(self, remote: RemoteServer, options: Options, listed: types.Prompt) -> None:
        super().__init__(remote, options)
        name = f"prompt_{_tool_name(remote.name)}_{_tool_name(listed.name)}"  # hardly that of another server's
        self._listed = listed = self._known("prompt", listed)
        arguments = listed.arguments or []
        parts = {argument.name: {**_TEXT, "description": argument.description or ""} for argument in arguments}
        schema = _schema(parts, [argument.name for argument in arguments if argument.required])
        text, title = listed.description or "", listed.title
        self.about = RemoteTool(name, remote.name, "prompt", text, schema, title=title, read_only=True)
        self.names = frozenset({name, listed.name})

    def is_for_models(self) -> bool:
        return False

    def label(self) -> str:
        return f"the prompt `{self._listed.name}`"

    def get_offer(self) -> PromptOffer:
        listing = self._listed.model_dump(by_alias=True, mode="json", exclude_none=True)
        name = self._options.prefix + self._listed.name
        return PromptOffer({"description": None, "arguments": None, **listing, "name": name})

    async def complete(self, argument: str, typed: str, others: Mapping[str, str]) -> FoundValues:
        """Return the server's completions."""
        reference = types.PromptReference(name=self._listed.name)
        return await self._completed(reference, argument, typed, others)

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._remote.get_prompt(self._listed.name, arguments, ctx, accepted=True)
        messages = [{"role": message.role, "content": message.content} for message in messages_of(result.messages)]
        return self.keep_original(ctx, messages, result)


class PromptList(Member):
    """The list of a server's prompts."""

    def __init__(self, remote: RemoteServer, options: Options) -> None:
        super().__init__(remote, options)
        text = f"List the prompts of the server {remote.name}: texts that it has ready, with the arguments they take."
        self.about = RemoteTool("list_prompts", remote.name, "prompt", text, _schema({}))
        self.names = frozenset({"list_prompts"})

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        return [asdict(prompt_of(prompt)) for prompt in await self._remote.list_prompts()]


class PromptText(Member):
    """One prompt, filled in."""

    def __init__(self, remote: RemoteServer, options: Options) -> None:
        super().__init__(remote, options)
        schema = _schema({"name": _TEXT, "arguments": _NAMES}, ["name"])
        text = f"Return the messages of a prompt of the server {remote.name}, with its arguments filled in."
        self.about = RemoteTool("get_prompt", remote.name, "prompt", text, schema)
        self.names = frozenset({"get_prompt"})

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        result = await self._remote.get_prompt(arguments["name"], arguments.get("arguments") or {}, ctx)
        return [{"role": message.role, "content": message.content} for message in messages_of(result.messages)]


class AccessMember(Member):
    """A tool in the place of those of a server to which no principal has given access: its call asks for access."""

    def __init__(self, remote: RemoteServer, options: Options) -> None:
        super().__init__(remote, options)
        text = (
            f"Ask for access to the server {remote.name}, whose tools are not known before. The call is suspended "
            "until the user has given access at a link; then the tools are there."
        )
        self.about = RemoteTool("get_access", remote.name, "tool", text, _schema({}))
        self.names = frozenset({"get_access"})

    def label(self) -> str:
        return "the access"

    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        await self._remote.kept.get()
        names = [self._options.prefix + _tool_name(tool.name) for tool in self._remote.listing.tools]
        return f"Access is given. The server has these tools: {', '.join(names) or 'none'}"


def members_of(remote: RemoteServer, options: Options) -> list[Member]:
    """Return the members of a server that the host includes."""
    listing = remote.listing
    members: list[Member] = [ToolMember(remote, options, tool) for tool in listing.tools]
    if options.include_resources is not False:
        members += [ResourceMember(remote, options, resource) for resource in listing.resources]
        members += [
            member for template in listing.templates if (member := _template(remote, options, template)) is not None
        ]
    if options.include_prompts:
        members += [PromptList(remote, options), PromptText(remote, options)]
    if options.include_prompts is not False:
        members += [PromptMember(remote, options, prompt) for prompt in listing.prompts]
    return members


def number_doubles(members: Sequence[Member]) -> None:
    """Number the members of a server that come to one name, but for one of them."""
    names = {member.about.name for member in members}
    first: dict[str, Member] = {}
    numbers: dict[str, Iterator[int]] = {}
    renamed: list[str] = []
    for member in sorted(members, key=lambda member: not member.keeps_name()):
        wanted = member.about.name
        other = first.setdefault(wanted, member)
        if other is not member:
            free = (f"{wanted}_{number}" for number in numbers.setdefault(wanted, count(2)))
            member.rename(next(name for name in free if name not in names))
            names.add(member.about.name)
            renamed.append(f"{member.label()}, as {other.label()} has its name, is `{member.about.name}`")
    if renamed:
        more = f"; and {len(renamed) - _MOST_NAMED} more" if len(renamed) > _MOST_NAMED else ""
        server, named = members[0].about.server, "; ".join(renamed[:_MOST_NAMED])
        _log.warning("names of the server `%s` get a number: %.2000s%s.", server, named, more)


def _template(remote: RemoteServer, options: Options, listed: types.ResourceTemplate) -> TemplateMember | None:
    try:
        return TemplateMember(remote, options, listed)
    except InvalidUriTemplate:  # no arguments could fill it in
        return None


def _schema(properties: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema if required is None else {**schema, "required": [*required]}


def _with_object_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with an object for each property, which JSON Schema lets be a bool as well."""
    parts: Any = schema.get("properties")
    if not isinstance(parts, dict):
        return schema
    named = cast("dict[str, Any]", parts)
    spelt = {name: _BOOLS[part] if isinstance(part, bool) else part for name, part in named.items()}
    return {**schema, "properties": spelt}


def _description_of(verb: str, name: str, place: str, text: str | None) -> str:
    return f"{verb} {name} ({place})" + (f": {text}" if text else ".")


def _tool_name(name: str) -> str:
    """Return the name of a tool with `_` for characters that providers do not take: dots, slashes, spaces."""
    return _NOT_A_TOOL.sub("_", name) or "_"


def _resource_name(verb: str, name: str, uri: str) -> str:
    """Return a tool's name for a resource: `read_` or `query_`, and its name or its URI."""
    words = _NOT_A_WORD.sub("_", name).strip("_") or _NOT_A_WORD.sub("_", uri.partition("://")[2]).strip("_")
    return f"{verb}_{words.lower() or 'resource'}"
