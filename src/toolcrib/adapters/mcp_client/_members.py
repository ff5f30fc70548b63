"""Members of a server as tools: its tools, its resources and templates, its prompts."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from toolcrib.adapters.mcp_client._checking import argument_checks
from toolcrib.adapters.mcp_client._listing import Item, identity_of
from toolcrib.adapters.mcp_client._options import Options, ToolLabels
from toolcrib.adapters.mcp_client._pins import Change
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._values import (
    RemoteTool,
    Warnings,
    effect_of,
    messages_of,
    prompt_of,
    read_as_json,
    resource_of,
    result_of,
    source_of,
    texts_of,
    warnings_in,
)
from toolcrib.approvals import ApprovalPolicy, PinKind
from toolcrib.calls import CHANGED_ON_SERVER, ApprovalRequest, Consent, ToolCall
from toolcrib.errors import RemoteToolError, ServerError
from toolcrib.hooks import ModelInput, ambient_context
from toolcrib.pipeline import Run
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import OriginalResults
from toolcrib.tools import (
    FoundValues,
    Instruction,
    Offering,
    PromptOffer,
    ResourceListener,
    ResourceOffer,
    Tool,
    ToolOptions,
    is_for_apps,
)

L = TypeVar("L", types.Tool, types.Resource, types.ResourceTemplate, types.Prompt)

_log = logging.getLogger("toolcrib.mcp")
_MOST_NAMED = 5  # that get a number, in a line of the log
_TEXT: Mapping[str, Any] = {"type": "string"}
_BOOLS: Mapping[bool, Any] = {True: {}, False: {"not": {}}}
_NOT_A_TOOL = re.compile(r"[^A-Za-z0-9_-]")
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
_NAMES: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT, "default": {}}


class Member(Offering):
    """A tool, resource, template or prompt of a server. The latter three are offered to clients as what they are.

    Attributes:
        names: The names by which an option may name it.
        change: How it differs from what a person knows of it, where tools are pinned.
        fault: Why it cannot be a tool, as `prepare` found.
    """

    about: RemoteTool
    names: frozenset[str]
    change: Change | None = None
    warned = Warnings()
    fault: ServerError | None = None
    _name_before = ""  # the number
    _pinned: tuple[PinKind, Item] | None = None  # what it is made of, as the server lists it
    _spec: ToolSpec

    def __init__(self, remote: RemoteServer, options: Options) -> None:
        self._remote, self._options = remote, options
        self.listed = True

    def is_as(self, other: Member) -> bool:
        """Return whether the server says of both the same, so that one does for the other."""
        mine, theirs = (self.label(), self.about, self.change), (other.label(), other.about, other.change)
        return mine == theirs and self.warned == other.warned and self._compared() == other._compared()

    def _compared(self) -> tuple[Any, ...]:
        """Return the server's statements about it to clients."""
        return self.get_listing(), self.get_offer()

    def _known(self, kind: PinKind, listed: L) -> L:
        """Return the listed item; where it is pinned and has changed, the pinned one."""
        pins = self._remote.kept.pins
        self._pinned = kind, listed
        self.change = None if pins is None else pins.change_in(kind, listed)
        return listed if self.change is None else self.change.shown()

    def prepare(self) -> None:
        """Read the schemas for `tool`; what that takes grows with what the server sends, so call it in a thread."""
        about, options = self.about, self._options
        override = self._override(options.return_schemas)
        text = self._override(options.descriptions)
        try:
            self._spec = ToolSpec.from_schema(
                self._call,
                about.parameters,
                name=options.prefix + about.name,
                description=about.description if text is None else text,
                returns=about.returns if override is None else override,
                check=argument_checks(about.name, about.parameters),
            )
        except (AttributeError, TypeError, ValueError) as error:  # a schema may be anything
            self.fault = unreadable(self._remote.name, about.name, str(error))
            self.fault.__cause__ = error
            return
        self._spec.is_elsewhere = True
        if self._spec.wrong_keywords:
            text = "the schema of %s of the server `%s` is wrong at %s, which is left out and not checked"
            _log.warning(text, self.label(), self._remote.name, self._spec.wrong_keywords)

    def tool(self) -> Tool[..., Any]:
        """Return it as a tool once it is prepared, with the gates of the host, which the server cannot change."""
        about, options = self.about, self._options
        labels: ToolLabels = self._override(options.labels) or options.labels.get("*", {})
        tool: Tool[..., Any] = Tool(
            self._spec,
            ToolOptions(
                tags=self.tags(),
                requires_approval=self._approval(),
                effect=labels.get("effect") or effect_of(about, trusted=options.trusted),
                source=labels.get("source") or source_of(about, self.warned, trusted=options.trusted),
                content=labels.get("content", ()),
                readers=labels.get("readers", () if self.warned.private else None),
                max_result_chars=options.max_result_chars,
                default=self.is_for_models(),
            ),
            source=self,
        )
        tool.origin = f"{self.label()} of the MCP server `{self._remote.name}`"
        return tool

    def tags(self) -> frozenset[str]:
        """Return its tags, which hooks select by."""
        return self.about.tags()

    def is_for_models(self) -> bool:
        """Return whether models are offered it as a tool."""
        return True

    def keep_original(self, ctx: RunContext[Any] | None, value: Any, result: Any) -> Any:
        """Return the value of a result, which is kept for a server that passes it on unchanged."""
        originals = None if ctx is None else ctx.provided.get(OriginalResults)
        if ctx is not None and isinstance(originals, OriginalResults):
            originals.keep(ctx.call_id, value, result)
        return value

    def label(self) -> str:
        """Return its kind and its name on the server, for messages."""
        return f"the tool `{self.about.name}`"

    def is_available(self, ctx: RunContext[Any]) -> bool:
        return self.listed

    def get_definition(self) -> Mapping[str, Any]:
        """Return the server's statements about it; for a change, the whole new item."""
        definition = self.about.definition() if self.change is None else {"listed": self.change.now}
        return definition if self._identity() in ("", self.about.name) else {**definition, "is": self._identity()}

    def rename(self, name: str) -> None:
        """Change the name to one with a number, as another member of the server has it; options name that one by it."""
        self._name_before = self.about.name
        self.about, self.names = replace(self.about, name=name), self.names - {self._name_before} | {name}

    def keeps_name(self) -> bool:
        """Return whether the name is the server's own, which others of the server that come to the same give way to."""
        return self._pinned is not None and self._pinned[0] == "tool" and self._identity() == self.about.name

    def _identity(self) -> str:
        return "" if self._pinned is None else identity_of(self._pinned[1])

    def get_identity(self) -> Mapping[str, Any]:
        return self._remote.identity

    @property
    def may_need_consent(self) -> bool:
        return self._options.credentials is not None

    async def get_consent(self, ctx: RunContext[Any]) -> Consent | None:
        """Return the consent that the principal must give before the server is used for them."""
        return await self._remote.consent_for(ctx)

    def get_approval_metadata(self) -> dict[str, Any] | None:
        """Return the difference between the tool as a person knows it and as it is."""
        return None if self.change is None else {CHANGED_ON_SERVER: self.change.text()}

    async def get_settler(self, request: ApprovalRequest) -> str | None:
        """Return who accepted what the server has now, where a call was suspended because it had changed."""
        pins, pinned = self._remote.kept.pins, self._pinned
        if pins is None or pinned is None or CHANGED_ON_SERVER not in request.metadata:
            return None
        return await pins.accepted_by(*pinned)

    def _approval(self) -> ApprovalPolicy:
        names = self.names | {self._name_before}  # it was asked about by that before the server had another of it
        needed, change = self._options.needs_approval(self.about, names), self.change
        if change is None:
            return needed

        async def policy(arguments: Any, ctx: Any) -> bool | str:
            return needed if await change.pins.is_accepted(change) else change.reason

        return policy

    def get_instruction(self, ctx: RunContext[Any]) -> Instruction | None:
        text = self._remote.instructions if self._options.include_instructions else None
        return Instruction(f"mcp: {self._remote.name}", text) if text else None

    async def _call(self, /, **arguments: Any) -> Any:
        ctx = ambient_context()
        if self.change is not None:
            if ctx is not None and ctx.approved:
                await self.change.pins.accept(self.change, ctx.approved_by or "host")
            await self._remote.kept.on_change()
        value = await self.run(arguments, ctx)
        return value if self._override(self._options.return_schemas) is None else read_as_json(value)

    async def _completed(self, reference: Any, argument: str, typed: str, values: Mapping[str, str]) -> FoundValues:
        found = await self._remote.complete(reference, argument, typed, values)
        return FoundValues(found.values, found.total, found.has_more)

    @abstractmethod
    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        """Make the request to the server."""

    def _override(self, table: Mapping[str, Any]) -> Any:
        return next((table[name] for name in self.names if name in table), None)


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
            run.read(ModelInput("warning", warned.labels, request=ToolCall(self._name, {}, ctx.call_id)))
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
            _log.info("%s: updates of %s do not come: %s", self._remote.name, uri, error)

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


def unreadable(server: str, name: str, problem: str) -> ServerError:
    """Return the error for a tool whose description by a server cannot be read."""
    return ServerError(server, f"describes its tool `{name:.200}` in a way that cannot be read: {problem:.500}")


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
