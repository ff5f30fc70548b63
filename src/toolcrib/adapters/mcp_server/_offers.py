"""Resources and prompts of an open toolset, as clients list them and as their calls are made and answered."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from toolcrib._json_writer import read_json
from toolcrib.adapters.mcp_server._replies import block_of, clean, is_untouched, meta_of, text_in
from toolcrib.calls import Completed, Failed, Media, Outcome, render
from toolcrib.errors import SchemaError, exception_of
from toolcrib.pipeline import Run
from toolcrib.tools import Offering, PromptOffer, PromptText, ResourceOffer, offering_of
from toolcrib.toolsets import ToolEntry, Toolset, is_available

_log = logging.getLogger("toolcrib.adapters")
MAX_URI_CHARS = 16_000
_OLD_NOT_FOUND = -32_002  # of the older generation; the newer one has it as a wrong parameter


@dataclass(frozen=True, slots=True)
class FoundResource:
    """The resource that a URI names."""

    entry: ToolEntry
    offer: ResourceOffer
    arguments: Mapping[str, Any]


class Offers:
    """The resources and prompts among the tools of an open toolset."""

    def __init__(self, toolset: Toolset) -> None:
        self.prompts: dict[str, ToolEntry] = {}
        listed: list[tuple[str, ToolEntry]] = []
        self._fixed: dict[str, FoundResource] = {}
        self._templates: dict[str, tuple[UriTemplate, ToolEntry, ResourceOffer]] = {}
        for entry in toolset:
            offer = _offer_of(entry)
            if isinstance(offer, PromptOffer):
                listed.append((_prompt_name(entry, offer), entry))
            else:
                self._add(entry, offer)
        # the host's own first, so that no other server takes their names
        for name, entry in sorted(listed, key=lambda pair: pair[0] != pair[1].name):
            is_taken = name in self.prompts
            if is_taken:
                _log.warning("two prompts are named %s; that of %s is served as %s", name, entry.origin, entry.name)
            self.prompts.setdefault(entry.name if is_taken else name, entry)

    def _add(self, entry: ToolEntry, offer: ResourceOffer | PromptOffer | None) -> None:
        if isinstance(offer, ResourceOffer) and not offer.is_template:
            if offer.uri in self._fixed:
                _log.warning("%s is read by %s alone", offer.uri, self._fixed[offer.uri].entry.name)
            else:
                self._fixed[offer.uri] = FoundResource(entry, offer, {})
        elif isinstance(offer, ResourceOffer):
            try:
                self._templates.setdefault(offer.uri, (UriTemplate.parse(offer.uri), entry, offer))
            except InvalidUriTemplate as error:
                _log.warning("%s is not listed: %s", entry.name, error)

    @property
    def _reading(self) -> list[ToolEntry]:
        """The entries that read the resources."""
        return [*(found.entry for found in self._fixed.values()), *(entry for _, entry, _ in self._templates.values())]

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools that read them."""
        return frozenset(entry.name for entry in (*self._reading, *self.prompts.values()))

    @property
    def listed(self) -> tuple[frozenset[Any], frozenset[Any]]:
        """The lists of resources and of prompts, to be compared with later ones."""
        resources = {(uri, id(found.entry.tool)) for uri, found in self._fixed.items()}
        templates = {(uri, id(entry.tool)) for uri, (_, entry, _) in self._templates.items()}
        return frozenset(resources | templates), frozenset((name, id(e.tool)) for name, e in self.prompts.items())

    # --- scopes

    @property
    def has_scopes(self) -> bool:
        """True if one of the resources or prompts needs scopes."""
        return any(entry.scopes for entry in (*self._reading, *self.prompts.values()))

    async def scopes_of_uri(self, uri: str, run: Run) -> Mapping[str, frozenset[str]]:
        """Return the scopes that a resource or a template needs, by the names of what reads it.

        Those of everything that could read it count: what is read by a template of no scopes may be a resource that
        has some. Nothing is said of what the run is not shown.
        """
        found = [offered.entry for offered in self._named(uri)] if len(uri) <= MAX_URI_CHARS else []
        if uri in self._templates:
            found.append(self._templates[uri][1])
        shown = [await is_shown(entry, run) for entry in found]
        return {entry.name: entry.scopes for entry in found if entry.scopes} if any(shown) else {}

    async def scopes_of_prompt(self, name: str, run: Run) -> Mapping[str, frozenset[str]]:
        """Return the scopes that a prompt needs, by its name; none where the run is not shown it."""
        entry = await self.prompt(name, run)
        return {} if entry is None else {entry.name: entry.scopes}

    # --- lists

    async def resources(self, run: Run) -> list[types.Resource]:
        """Return the resources that a run is shown."""
        shown = [found for found in self._fixed.values() if await is_shown(found.entry, run)]
        return [
            types.Resource.model_validate({**_listing(offered.entry, offered.offer), "uri": offered.offer.uri})
            for offered in shown
        ]

    async def templates(self, run: Run) -> list[types.ResourceTemplate]:
        """Return the templates of resources that a run is shown."""
        shown = [(entry, offer) for _, entry, offer in self._templates.values() if await is_shown(entry, run)]
        return [
            types.ResourceTemplate.model_validate({**_listing(entry, offer), "uriTemplate": offer.uri})
            for entry, offer in shown
        ]

    async def prompt_list(self, run: Run) -> list[types.Prompt]:
        """Return the prompts that a run is shown."""
        shown = [(name, entry) for name, entry in self.prompts.items() if await is_shown(entry, run)]
        return [prompt for name, entry in shown if (prompt := _prompt(name, entry)) is not None]

    # --- one of them

    async def resource(self, uri: str, run: Run) -> FoundResource | None:
        """Return the resource that a URI names; None for one that the run is not shown."""
        for found in self._named(uri):
            if await is_shown(found.entry, run):
                return found
        return None

    def _named(self, uri: str) -> Iterator[FoundResource]:
        if uri in self._fixed:
            yield self._fixed[uri]
        for template, entry, offer in self._templates.values():
            arguments = template.match(uri)
            if arguments is not None:
                yield FoundResource(entry, offer, arguments_of(entry, arguments))

    async def template(self, uri: str, run: Run) -> ToolEntry | None:
        """Return the entry that reads a template, or the resource that is named in its place."""
        found = self._templates.get(uri)
        if found is not None and await is_shown(found[1], run):
            return found[1]
        resource = await self.resource(uri, run)
        return None if resource is None else resource.entry

    async def prompt(self, name: str, run: Run) -> ToolEntry | None:
        """Return a prompt; None for one that the run is not shown."""
        entry = self.prompts.get(name)
        return entry if entry is not None and await is_shown(entry, run) else None

    def sources(self) -> list[Offering]:
        """Return the sources of resources, each once."""
        found = [offering_of(entry.tool) for entry in self._reading]
        return [*{id(source): source for source in found if source is not None}.values()]


def is_offered_alone(entry: ToolEntry) -> bool:
    """Return whether models are offered an entry as no tool: it is a resource or a prompt and nothing else."""
    return entry.off and offering_of(entry.tool) is not None


async def is_shown(entry: ToolEntry, run: Run) -> bool:
    """Return whether a run is shown a resource or a prompt; the pipeline asks again when it is read."""
    if run.available is not None and entry.name not in run.available:
        return False
    try:
        return await is_available(entry, run.context())
    except BaseException as error:  # the condition is the user's code
        _log.error("the condition of %s failed; it is not shown", entry.name, exc_info=exception_of(error))
        return False


def _listing(entry: ToolEntry, offer: ResourceOffer) -> dict[str, Any]:
    listing = {"name": entry.name, "description": entry.description or entry.name, "mimeType": offer.mime_type}
    return {**listing, **(offer.listing or {})}


def _offer_of(entry: ToolEntry) -> ResourceOffer | PromptOffer | None:
    offering = offering_of(entry.tool)
    return None if offering is None else offering.get_offer()


def _prompt_name(entry: ToolEntry, offer: PromptOffer) -> str:
    """Return the name that clients know a prompt by: that of its listing, with the prefix that the host put on it."""
    listed = (offer.listing or {}).get("name")
    if listed is None or not entry.name.endswith(entry.tool.name):  # the host gave it a name of its own
        return entry.name
    return clean(entry.name.removesuffix(entry.tool.name) + str(listed))


def _prompt(name: str, entry: ToolEntry) -> types.Prompt | None:
    offer = _offer_of(entry)
    listing = (offer.listing if isinstance(offer, PromptOffer) else None) or {}
    try:
        arguments = {} if "arguments" in listing else {"arguments": _arguments(entry.parameters)}
    except SchemaError:
        _log.exception("%s is not listed: its arguments cannot be described", entry.name)
        return None
    return types.Prompt.model_validate({"description": entry.description or name, **arguments, **listing, "name": name})


def _arguments(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = parameters.get("required", ())
    parts = cast("Mapping[str, Mapping[str, Any]]", parameters.get("properties", {}))
    return [
        {"name": name, "description": part.get("description"), "required": name in required}
        for name, part in parts.items()
    ]


def arguments_of(entry: ToolEntry, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a prompt or a resource, which come as texts: JSON where the parameter is not a text."""
    parts = cast("Mapping[str, Mapping[str, Any]]", entry.parameters.get("properties", {}))
    return {name: _read(text, parts.get(name, {})) for name, text in values.items()}


def _read(text: Any, schema: Mapping[str, Any]) -> Any:
    kind: Any = schema.get("type")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if not isinstance(text, str) or kind is None or "string" in kinds:
        return cast("Any", text)
    try:
        return read_json(text)
    except ValueError:
        return text  # validation says what is wrong with it


def not_found(uri: str, *, stateless: bool) -> MCPError:
    """Return the error for a URI that names no resource."""
    code = INVALID_PARAMS if stateless else _OLD_NOT_FOUND
    return MCPError(code, f"Resource not found: {clean(uri)[:500]}", {"uri": clean(uri)[:2_000]})


_NOT_THERE = ("unknown_tool", "not_available")
_CONTENTS = types.TextResourceContents | types.BlobResourceContents


def resource_reply(
    uri: str, found: FoundResource, outcome: Outcome, original: Any, *, stateless: bool
) -> types.ReadResourceResult:
    """Return the contents of a resource; the result of another server unchanged, unless the host changes it.

    Raises:
        MCPError: There is no such resource, or the call has no result.
    """
    if isinstance(outcome, Failed) and outcome.code in _NOT_THERE:
        raise not_found(uri, stateless=stateless)
    done = _completed(outcome)
    if isinstance(original, types.ReadResourceResult) and is_untouched(done, found.entry, original):
        # a copy that is kept for others would go round the gates
        return original.model_copy(update={"meta": meta_of(original), "cache_scope": "private"})
    return types.ReadResourceResult(contents=[*_contents(uri, found, done)])


def prompt_reply(name: str, entry: ToolEntry, outcome: Outcome, original: Any) -> types.GetPromptResult:
    """Return the messages of a prompt; those of another server unchanged, as `resource_reply` does.

    Raises:
        MCPError: There is no such prompt, or the call has no result.
    """
    if isinstance(outcome, Failed) and outcome.code in _NOT_THERE:
        raise MCPError(INVALID_PARAMS, clean(f"there is no prompt `{name:.200}`"))
    done = _completed(outcome)
    if isinstance(original, types.GetPromptResult) and is_untouched(done, entry, original):
        return original.model_copy(update={"meta": meta_of(original)})
    messages = [*_messages(done, done.value, "user")]
    return types.GetPromptResult(description=entry.description or None, messages=messages)


def _completed(outcome: Outcome) -> Completed:
    if isinstance(outcome, Completed):
        return outcome
    wrong = isinstance(outcome, Failed) and outcome.code == "invalid_arguments"
    raise MCPError(INVALID_PARAMS if wrong else INTERNAL_ERROR, clean(outcome.text()))


def _contents(uri: str, found: FoundResource, done: Completed) -> Iterator[_CONTENTS]:
    """Yield the contents of a resource: bytes and media as they are, all else as text."""
    value, mime_type, meta = done.value, found.offer.mime_type, found.offer.meta
    about: dict[str, Any] = {"uri": uri, "_meta": None if meta is None else dict(meta)}
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not any(isinstance(part, bytes | bytearray | Media | types.TextResourceContents) for part in parts):
        rendered = render(done)
        if rendered.is_error:
            raise MCPError(INTERNAL_ERROR, clean(rendered.text))
        kind = mime_type or ("text/plain" if isinstance(value, str) else "application/json")
        yield types.TextResourceContents(mime_type=kind, text=clean(rendered.text), **about)
        return
    for part in parts:
        match part:
            case types.TextResourceContents() | types.BlobResourceContents():
                yield part
            case bytes() | bytearray():
                blob = base64.b64encode(part).decode()
                kind = mime_type or "application/octet-stream"
                yield types.BlobResourceContents(mime_type=kind, blob=blob, **about)
            case Media(data=bytes()):
                yield types.BlobResourceContents(mime_type=mime_type or part.mime_type, blob=part.base64, **about)
            case _:
                text = clean(render(replace(done, value=part)).text)
                yield types.TextResourceContents(mime_type=mime_type or "text/plain", text=text, **about)


def _messages(done: Completed, value: Any, role: Any) -> Iterator[types.PromptMessage]:
    """Yield the messages that a value is."""
    match value:
        case types.PromptMessage():
            yield value
        case PromptText():
            yield from _messages(done, value.content, value.role)
        case {"role": str() as said, "content": content}:
            yield from _messages(done, content, said)
        case list() | tuple():
            for part in cast("list[Any]", value):
                yield from _messages(done, part, role)
        case {"type": str()}:
            yield _message(done, role, value)
        case _:
            rendered = render(replace(done, value=value), blocks=text_in)
            if rendered.is_error:
                raise MCPError(INTERNAL_ERROR, clean(rendered.text))
            for part in rendered.parts or (rendered.text,):
                content = types.TextContent(text=clean(part)) if isinstance(part, str) else part
                yield _message(done, role, block_of(content) if isinstance(content, Media) else content)


def _message(done: Completed, role: Any, content: Any) -> types.PromptMessage:
    try:
        return types.PromptMessage.model_validate({"role": role, "content": content})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"the prompt `{done.tool}` has an invalid message: {place}: {first['msg']}"
        raise MCPError(INTERNAL_ERROR, text) from None
