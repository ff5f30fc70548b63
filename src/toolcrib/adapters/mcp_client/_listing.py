"""Listing of a server, page by page: its tools, resources, templates and prompts; and its pins, which show changes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_client._checking import unreadable_tools
from toolcrib.approvals import PinKind, ToolPins
from toolcrib.calls import cut, differences
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import check_size, rewrite
from toolcrib.jsonschema.checker import SMALL

T = TypeVar("T")
_log = logging.getLogger("toolcrib.mcp")
_MAX_PAGES, _MAX_ITEMS = 1000, 10_000  # a server could name a next page without end
_MAX_NAMED = 5  # doubles in a line of the log
_MOST_PARTS = 100_000  # of the large schemas of a server, which take seconds to be read
_TOO_MANY_PARTS = (
    f"the large schemas of the server have more than {_MOST_PARTS:,} objects and lists; give its tools smaller ones"
)
Item: TypeAlias = types.Tool | types.Resource | types.ResourceTemplate | types.Prompt
L = TypeVar("L", bound=Item)


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools, resources and prompts of a server, as it listed them.

    Attributes:
        unreadable: Why it has no more tools than these: what cannot be read of those left out, by their names.
        left_out: Why it has no resources, templates or prompts: what went wrong, by the name of the list.
        not_asked: The names of the lists that are not wanted.
    """

    tools: tuple[types.Tool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    not_asked: frozenset[str] = frozenset()


async def list_server(session: ClientSession, server: str, *, resources: bool, seconds: float) -> Listing:
    """Return the listing of a server; only what its capabilities name is requested.

    Args:
        resources: Whether resources and templates are wanted. A server whose list of them fails has its tools.

    Raises:
        TimeoutError: The list of tools takes longer.
        MCPError: The list of tools fails; likewise the errors of a reply that does not fit, and of a lost connection.
    """
    known = session.server_capabilities or types.ServerCapabilities()
    unknown = known == types.ServerCapabilities()  # with a fixed version there was no handshake
    unreadable: dict[str, str] = {}
    token = unreadable_tools.set(unreadable)
    try:
        async with asyncio.timeout(seconds):
            tools = await pages(session.list_tools, lambda page: page.tools) if known.tools or unknown else ()
    finally:
        unreadable_tools.reset(token)
    found_tools = await asyncio.to_thread(readable, without_doubles(server, "tools", tools), unreadable)
    failed: dict[str, str] = {}
    static: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    if resources and (known.resources or unknown):
        found = pages(session.list_resources, lambda page: page.resources)
        static = await _optional(found, "resources", seconds, failed)
        filled_in = pages(session.list_resource_templates, lambda page: page.resource_templates)
        templates = await _optional(filled_in, "templates", seconds, failed)
    if known.prompts:
        prompts = await _optional(pages(session.list_prompts, lambda page: page.prompts), "prompts", seconds, failed)
    not_asked = frozenset[str]() if resources else frozenset({"resources", "templates"})
    return Listing(
        found_tools,
        without_doubles(server, "resources", static),
        without_doubles(server, "templates", templates),
        without_doubles(server, "prompts", prompts),
        unreadable,
        failed,
        not_asked,
    )


def readable(tools: Sequence[types.Tool], unreadable: dict[str, str]) -> tuple[types.Tool, ...]:
    """Return the tools whose schemas can be read; of the others, put in `unreadable` why not, by their names."""
    found: list[types.Tool] = []
    in_all = 0
    for tool in tools:
        try:
            parts = check_size(tool.name, tool.input_schema, tool.output_schema)
        except SchemaTooLarge as error:
            unreadable[tool.name] = str(error).removesuffix(".")
            continue
        if parts > SMALL and in_all + parts > _MOST_PARTS:
            unreadable[tool.name] = _TOO_MANY_PARTS
            continue
        in_all += parts if parts > SMALL else 0
        found.append(tool)
    return tuple(found)


def identity_of(listed: Item) -> str:
    """Return the identity of an item on its server: its URI, or else its name."""
    match listed:
        case types.Resource():
            return listed.uri
        case types.ResourceTemplate():
            return listed.uri_template
        case _:
            return listed.name


def without_doubles(server: str, kind: str, listed: Sequence[L]) -> tuple[L, ...]:
    """Return the listed items, each once: the server could not tell a double from the first."""
    first: dict[str, L] = {}
    doubles: dict[str, None] = {}
    for item in listed:
        if first.setdefault(identity_of(item), item) is not item:
            doubles[identity_of(item)] = None
    if doubles:
        named = ", ".join(f"`{name:.200}`" for name in [*doubles][:_MAX_NAMED])
        more = f" and {len(doubles) - _MAX_NAMED} more" if len(doubles) > _MAX_NAMED else ""
        _log.warning("the server `%s` lists %s more than once: %s%s. The first is taken.", server, kind, named, more)
    return tuple(first.values())


async def _optional(
    listed: Awaitable[tuple[T, ...]], name: str, seconds: float, failed: dict[str, str]
) -> tuple[T, ...]:
    """Return a list, or none where it fails: the reason is then put in `failed` under its name."""
    try:
        async with asyncio.timeout(seconds):
            return await listed
    except TimeoutError:
        failed[name] = f"no answer within {seconds:g} s"
    except MCPError as error:
        if error.code == types.CONNECTION_CLOSED:
            raise
        failed[name] = error.message or f"error {error.code}"
    except ValidationError as error:
        failed[name] = f"the reply does not fit the protocol: {error.errors(include_url=False)[0]['msg']}"
    return ()


async def pages(ask: Callable[..., Awaitable[Any]], of: Callable[[Any], list[T]]) -> tuple[T, ...]:
    """Return all pages of a list as one, empty where the server does not know the request."""
    found: list[T] = []
    cursor: str | None = None
    cursors: set[str | None] = {None}
    for _ in range(_MAX_PAGES):
        try:
            page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                break
            raise
        found += of(page)
        cursor = page.next_cursor
        if cursor in cursors or len(found) >= _MAX_ITEMS:
            break
        cursors.add(cursor)
    return tuple(found[:_MAX_ITEMS])


_MOST_CHARS: Final = 20_000  # of a difference in a request
_TYPES: Final = frozenset({"type", "properties", "required", "items", "additionalProperties"})
_SETS: Final = frozenset({"required", "enum", "type", "anyOf", "oneOf", "allOf"})  # of a schema
_TABLES_OF_SETS: Final = ("dependentRequired", "dependencies")  # of a schema
_SCHEMAS: Final = ("inputSchema", "outputSchema")  # of a tool
_NEW: Final = "A tool that is new on its server: a person has to accept it before its description is shown."
_KINDS: Final[Mapping[PinKind, type[Any]]] = {
    "tool": types.Tool,
    "resource": types.Resource,
    "template": types.ResourceTemplate,
    "prompt": types.Prompt,
}
_VARYING: Final = frozenset({"icons", "size", "annotations"})  # of resources; no model is shown them
_SHOWN_OF_NEW: Final = ("name", "uri", "uriTemplate")
_TEXT: Final = "instructions"  # the name and the one field of a server's instructions


class ServerPins:
    """The pins of one server that is open.

    Attributes:
        accepted: The event that is set, and replaced by another, when something is accepted here.
    """

    def __init__(self, store: ToolPins | str | Path, server: str) -> None:
        self._given, self.server = store, server
        self.accepted = asyncio.Event()
        self._kept: dict[PinKind, Mapping[str, Any]] = {}

    async def read(self, listing: Listing, instructions: str | None) -> None:
        """Read the pins of the server; a kind that appears for the first time is pinned."""
        store = await self._store()
        for kind, found in self._found(listing, instructions).items():
            self._kept[kind] = await store.begin(self.server, found, kind)

    def _found(self, listing: Listing, instructions: str | None) -> dict[PinKind, dict[str, Any]]:
        """Return the definitions to pin, by kind; a list that failed, or was not requested, is left out."""
        found: dict[PinKind, dict[str, Any]] = {"instructions": {_TEXT: {_TEXT: instructions or ""}}}
        for kind in _KINDS:
            name = f"{kind}s"
            if name not in listing.left_out and name not in listing.not_asked:
                found[kind] = {identity_of(item): _shape(item) for item in getattr(listing, name)}
        return found

    async def _store(self) -> ToolPins:
        if not isinstance(self._given, ToolPins):
            self._given = await asyncio.to_thread(ToolPins, self._given)
        return self._given

    def change_in(self, kind: PinKind, listed: Item) -> Change | None:
        """Return how something differs from what a person knows of it; None where it does not."""
        return self._change(kind, identity_of(listed), _shape(listed))

    def _change(self, kind: PinKind, name: str, now: Mapping[str, Any]) -> Change | None:
        before = self._kept.get(kind, {}).get(name)
        return None if _same_text(now) == _same_text(before) else Change(self, kind, name, before, now)

    def changes(self, listing: Listing, instructions: str | None) -> list[Change]:
        """Return all that differs from what a person knows of it."""
        found = self._found(listing, instructions)
        changes = [self._change(kind, name, now) for kind, items in found.items() for name, now in items.items()]
        return [change for change in changes if change is not None]

    def known_instructions(self) -> str | None:
        """Return the server's instructions as they were accepted last."""
        pinned = self._kept.get("instructions", {}).get(_TEXT, {})
        return pinned.get(_TEXT) or None

    def changed_in(self, listed: Iterable[types.Tool]) -> tuple[str, ...]:
        """Return the names of the tools that a person has to accept."""
        return tuple(tool.name for tool in listed if self.change_in("tool", tool) is not None)

    async def is_accepted(self, change: Change) -> bool:
        """Return whether a change has been accepted meanwhile, by another process perhaps."""
        self._kept[change.kind] = await (await self._store()).of(self.server, change.kind)
        return _same_text(self._kept[change.kind].get(change.name)) == _same_text(change.now)

    async def accepted_by(self, kind: PinKind, listed: Item) -> str | None:
        """Return who accepted something as the server lists it; None where it is not accepted so."""
        store, name = await self._store(), identity_of(listed)
        pinned, now = (await store.of(self.server, kind)).get(name), _shape(listed)
        same = now if pinned is None or _same_text(pinned) != _same_text(now) else pinned
        return await store.accepted_by(self.server, name, same, kind)

    async def accept(self, change: Change, by: str) -> None:
        """Keep something as it is now."""
        await (await self._store()).keep(self.server, change.name, change.now, by, change.kind)
        self._kept[change.kind] = {**self._kept.get(change.kind, {}), change.name: change.now}
        accepted, self.accepted = self.accepted, asyncio.Event()
        accepted.set()


@dataclass(frozen=True, slots=True)
class Change:
    """Something that a server describes in another way than a person knows it, or that is new.

    Attributes:
        pins: The pins of the server.
        kind: Its kind.
        name: Its name on the server, or its URI.
        before: Its earlier form, in the shapes of the protocol; None when it is new.
        now: Its form in the server's list.
    """

    pins: ServerPins
    kind: PinKind
    name: str
    before: Mapping[str, Any] | None
    now: Mapping[str, Any]

    @property
    def server(self) -> str:
        """The server, as the pins name it."""
        return self.pins.server

    @property
    def reason(self) -> str:
        """The reason why a person is asked."""
        if self.before is None:
            return f"`{self.name}` is new on the server {self.server} since it was first used"
        return f"the server {self.server} describes `{self.name}` in another way than when it was first used"

    def text(self) -> str:
        """Return the difference in lines, for the person who is asked; of 20,000 characters at most, the cut said."""
        return cut("\n".join(self.lines()), _MOST_CHARS)

    def lines(self) -> list[str]:
        """Return the whole difference: a line for each place."""
        return list(differences(dict(self.before or {}), dict(self.now)))

    def shown(self) -> Any:
        """Return it as models and people are shown it until it is accepted: as it was, or without any text."""
        shape = _KINDS[self.kind]
        if self.before is not None:
            return shape.model_validate(self.before)
        if self.kind == "tool":
            schema = _without_texts(self.now.get("inputSchema") or {})
            return shape.model_validate({"name": self.name, "description": _NEW, "inputSchema": schema})
        shown = {key: self.now[key] for key in _SHOWN_OF_NEW if key in self.now}
        arguments = cast("list[dict[str, Any]]", self.now.get("arguments") or [])
        bare = [{key: argument[key] for key in ("name", "required") if key in argument} for argument in arguments]
        return shape.model_validate({**shown, "arguments": bare} if bare else shown)

    async def accept(self, by: str) -> None:
        """Keep it as it is now."""
        await self.pins.accept(self, by)


def _shape(listed: BaseModel) -> dict[str, Any]:
    """Return it as JSON shapes, without what comes and goes and no model is shown."""
    left_out = {"icons"} if isinstance(listed, types.Tool | types.Prompt) else {*_VARYING}
    return json.loads(listed.model_dump_json(by_alias=True, exclude_none=True, exclude=left_out))


def _same_text(shape: Any) -> str:
    """Return a definition as text that is the same for what says the same: keys and some lists have no order."""
    if not isinstance(shape, Mapping):
        return _text(shape)
    fields = cast("Mapping[str, Any]", shape)
    return _text({**fields, **{name: _in_order(fields[name]) for name in _SCHEMAS if name in fields}})


def _text(shape: Any) -> str:
    return json.dumps(shape, sort_keys=True)


def _in_order(schema: Any) -> Any:
    """Return a JSON schema with those of its lists sorted that say the same in any order."""
    if not isinstance(schema, Mapping):
        return schema
    ordered = rewrite(cast("Mapping[str, Any]", schema), _in_order)
    sets = {name: _sorted(ordered[name]) for name in _SETS if name in ordered}
    tables = ((name, ordered[name]) for name in _TABLES_OF_SETS if isinstance(ordered.get(name), Mapping))
    return {**ordered, **sets, **{name: {key: _sorted(part) for key, part in table.items()} for name, table in tables}}


def _sorted(part: Any) -> Any:
    return sorted(cast("list[Any]", part), key=_text) if isinstance(part, list) else part


def _without_texts(schema: Any) -> Any:
    """Return a JSON schema with its types alone: every text in it may be an instruction to a model."""
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    fields = cast("Mapping[str, Any]", schema)
    return rewrite({key: value for key, value in fields.items() if key in _TYPES}, _without_texts)
