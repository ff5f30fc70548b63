"""Tools as `tools/list` shows them, and the outcomes of their calls as results; media are content blocks."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, cast, get_args
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel

from toolcrib.calls import Completed, Failed, Media, Outcome, jsonable, lenient, render
from toolcrib.errors import RemoteToolError, SchemaTooLarge
from toolcrib.jsonschema import drops_keywords, well_formed, wrapped
from toolcrib.jsonschema.checker import Checker, checker_of
from toolcrib.tools import output_schema
from toolcrib.toolsets import ToolEntry

_BLOCKS: tuple[type[Any], ...] = get_args(types.ContentBlock)


def block_of(media: Media) -> types.ContentBlock:
    """Return media as a block: an image, a sound, an embedded file, or a link where only the URL is known."""
    if media.data is None:
        return types.ResourceLink(
            uri=media.url or "",
            name=media.name or media.url or "",
            title=media.title or None,
            description=media.description or None,
            mime_type=media.mime_type,
        )
    match media.mime_type.partition("/")[0]:
        case "image":
            return types.ImageContent(data=media.base64, mime_type=media.mime_type, _meta=_names_of(media))
        case "audio":
            return types.AudioContent(data=media.base64, mime_type=media.mime_type, _meta=_names_of(media))
        case _:
            place = media.url or f"toolcrib://result/{quote(media.name)}"
            resource = types.BlobResourceContents(uri=place, mime_type=media.mime_type, blob=media.base64)
            return types.EmbeddedResource(resource=resource)


def _names_of(media: Media) -> dict[str, Any] | None:
    """Return the names of media, in the place for facts that a block of its kind has no field for."""
    names = {key: text for key in ("name", "title", "description") if (text := getattr(media, key))}
    return {"toolcrib/media": names} if names else None


def text_in(value: object) -> str | None:
    """Return the text of a block of the protocol that a tool gave itself, None for another value."""
    match value:
        case types.TextContent():
            return value.text
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case _:
            return "" if isinstance(value, _BLOCKS) else None


def _media_of(block: types.ImageContent | types.AudioContent) -> Media:
    try:
        return Media(block.mime_type, b64decode(block.data))
    except ValueError:
        return Media(block.mime_type, b"")


def is_block_type(annotation: Any) -> bool:
    """Return whether a tool with this return annotation gives blocks or media, which have no schema to keep to."""
    blocks = (Media, types.CallToolResult, *_BLOCKS)
    return annotation in blocks or any(map(is_block_type, get_args(annotation)))


def shape_of(value: Any) -> Any:
    """Return a value with blocks of the protocol as JSON shapes; of media the facts, as these are blocks beside it."""
    match value:
        case list() | tuple():
            return [shape_of(part) for part in cast("list[Any]", value)]
        case types.ImageContent() | types.AudioContent():
            return _media_of(value).facts()
        case _ if isinstance(value, _BLOCKS):
            return cast("BaseModel", value).model_dump(by_alias=True, mode="json", exclude_none=True)
        case _:
            return lenient(value)


_RESULT = "result"
_HINTS = {
    "read_only": {"read_only", "readonly", "read-only"},
    "destructive": {"destructive"},
    "open_world": {"open_world", "open-world"},
    "closed_world": {"closed_world", "closed-world"},
}


class ListedTool:
    """One tool, as `tools/list` shows it to the clients of one generation.

    Args:
        stateless: Whether that is the newer one, whose structured results may be of any type.
    """

    def __init__(self, entry: ToolEntry, *, stateless: bool) -> None:
        self.entry, self._stateless = entry, stateless
        self._listed = None if entry.tool.source is None else entry.tool.source.get_listing()

    def tool(self, description: str | None = None) -> types.Tool:
        """Return the tool for `tools/list`; raises SchemaError when its input cannot be described."""
        entry, listed = self.entry, self._listed
        listing, text = entry.tool.options.listing or {}, entry.description if description is None else description
        words = entry.name.replace("__", ": ").replace("_", " ").replace("-", " ").strip()
        schema: dict[str, Any] = dict(
            entry.parameters if listed is None else listed.get("inputSchema", entry.parameters)
        )
        shown = types.Tool(
            name=entry.name,
            title=words[:1].upper() + words[1:] if listed is None else listed.get("title"),
            description=text if listed is None else text or None,
            input_schema=schema if schema.get("type") == "object" else {"type": "object", **schema},
            output_schema=self.output_schema,
            annotations=_annotations(entry) if listed is None else listed.get("annotations"),
            icons=None if listed is None else listed.get("icons"),
            _meta=None if listed is None else listed.get("_meta"),
        )
        return shown if not listing else types.Tool.model_validate({**shown.model_dump(by_alias=True), **listing})

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of structured results; None where results need not keep to the tool's own.

        They need not where they may be cut, or where a post hook may change them.
        """
        entry = self.entry
        if entry.max_result_chars is not None or entry.post or is_block_type(entry.tool.spec.return_type):
            return None
        if self._listed_schema is not None:
            return self._listed_schema
        schema = output_schema(entry.tool)
        if schema is None:
            return None
        item_schema: Mapping[str, Any] = schema["items"] if entry.tool.is_streaming else schema
        if item_schema.get("type") == "string":  # a text is all there is to it
            return None
        return wrapped(schema, _RESULT) if self._wraps(item_schema) else dict(schema)

    def structured(self, value: Any, *, in_blocks: bool = False) -> Any:
        """Return the structured content for a value of JSON shapes: an object, as older clients want it, or None.

        Args:
            in_blocks: Whether media of the value are blocks, which some clients ignore beside structured content.
        """
        if self.output_schema is None:
            return cast("dict[str, Any]", value) if isinstance(value, dict) and not in_blocks else None
        is_wrapped = self._listed_schema is None and self._wraps(self.entry.return_schema or {})
        return {_RESULT: value} if is_wrapped else value

    def misfit(self, content: Any) -> str:
        """Return why structured content does not fit the schema that clients were shown; empty when it does."""
        if self._checker is None:
            return ""
        return next(map(str, self._checker.misfits(content)), "")

    @cached_property
    def _checker(self) -> Checker | None:
        return None if self.output_schema is None else checker_of(self.output_schema)

    @cached_property
    def _listed_schema(self) -> dict[str, Any] | None:
        """The schema of results that its server lists; None of one that is not of objects, for older clients.

        It is without wrong keywords: clients refuse each result under a schema that they cannot read.
        """
        listed: Any = None if self._listed is None else self._listed.get("outputSchema")
        if not isinstance(listed, dict):
            return None
        schema = cast("dict[str, Any]", listed)
        with suppress(SchemaTooLarge):
            repaired = well_formed(self.entry.name, schema)
            schema = dict(repaired.schema) if repaired.wrong or drops_keywords(schema) else schema
        return schema if self._stateless or schema.get("type") == "object" else None

    def _wraps(self, schema: Mapping[str, Any]) -> bool:
        return self.entry.tool.is_streaming or schema.get("type") != "object"


def _annotations(entry: ToolEntry) -> types.ToolAnnotations | None:
    tags = {tag.lower() for tag in entry.tool.tags}
    tagged = {hint for hint, words in _HINTS.items() if words & tags}
    open_world = True if "open_world" in tagged else False if "closed_world" in tagged else None
    hints: dict[str, Any] = {
        "read_only_hint": True if "read_only" in tagged else None,
        "destructive_hint": True if "destructive" in tagged else None,
        "idempotent_hint": True if entry.tool.options.idempotent else None,
        "open_world_hint": open_world,
    }
    return types.ToolAnnotations(**hints) if any(hint is not None for hint in hints.values()) else None


_OF_CONNECTION = frozenset(  # codes that say nothing about a request of the gateway's client
    {
        types.CONNECTION_CLOSED,
        types.HEADER_MISMATCH,
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        types.PARSE_ERROR,
        types.REQUEST_TIMEOUT,
        types.UNSUPPORTED_PROTOCOL_VERSION,
        types.URL_ELICITATION_REQUIRED,
    }
)


def reply_to(outcome: Outcome, listed: ListedTool | None) -> types.CallToolResult:
    """Return the reply to a client.

    Args:
        listed: The tool as clients see it; None for one that does not exist.

    Raises:
        MCPError: There is no such tool, which the protocol has as an error of the request.
    """
    match outcome:
        case Failed(code="unknown_tool"):
            raise MCPError(INVALID_PARAMS, clean(outcome.message))
        case Completed() if listed is not None:
            if isinstance(outcome.value, types.CallToolResult) and listed.entry.max_result_chars is None:
                return outcome.value.model_copy(update={"content": [_block(part) for part in outcome.value.content]})
            rendered = render(outcome, structured=True, blocks=text_in)
            if rendered.is_error:
                return error_result(rendered.text)
            content = [_block(part) for part in rendered.parts or (rendered.text,)]
            text, shape = clean(rendered.text), rendered.value
            if rendered.parts and shape is None:  # the tool gave blocks of the protocol itself
                if listed.output_schema is None:
                    return types.CallToolResult(content=content)
                shape = shape_of(outcome.value)
            structured = listed.structured(shape, in_blocks=bool(rendered.parts))
            if structured is not None and text is not rendered.text:
                structured = _cleaned(structured)
            misfit = listed.misfit(structured)
            if misfit:
                return error_result(f"{text}\n\nThis does not fit the output schema of `{outcome.tool}` ({misfit}).")
            return types.CallToolResult(content=content, structured_content=structured)
        case _:
            return error_result(outcome.text())


def original_reply(
    outcome: Outcome, listed: ListedTool, original: types.CallToolResult, *, stateless: bool
) -> types.CallToolResult | None:
    """Return the result of another server unchanged, but without its statements about itself.

    Structured content for which clients were shown no schema may be of any type for those of the stateless generation.
    Numbers that JSON does not have are texts in it, as in a result of any tool: "NaN", "Infinity", "-Infinity".
    None where the client is to get what was made of it: a post hook or a wrapper of the host's has not seen all that
    is in it, or it is longer than a result may be.
    """
    match outcome:
        case Completed():
            is_whole = not original.is_error
        case Failed(code="remote_tool_error"):
            is_whole = bool(original.is_error)
        case _:
            is_whole = False
    if not (is_whole and is_untouched(outcome, listed.entry, original)):
        return None
    content, structured = [_block(part) for part in original.content], jsonable(original.structured_content)
    keeps_to_none = bool(original.is_error) or listed.output_schema is None  # of errors no schema says anything
    is_free = keeps_to_none and (stateless or isinstance(structured, dict))
    if structured is not None and not is_free:
        structured = listed.structured(structured)
    return original.model_copy(update={"content": content, "structured_content": structured, "meta": meta_of(original)})


def meta_of(original: types.Result) -> dict[str, Any] | None:
    """Return the `_meta` of another server's result, but for what that server says of itself."""
    meta = {name: value for name, value in (original.meta or {}).items() if name != types.SERVER_INFO_META_KEY}
    return meta or None


def original_error(outcome: Outcome, entry: ToolEntry) -> MCPError | None:
    """Return the error by which another server answered a request, with its code and data.

    None where it is about the connection to that server, and not about the request; or where the client is to get
    what was made of it, as of a result.
    """
    raised = outcome.exception if isinstance(outcome, Failed) else None
    cause = raised.__cause__ if isinstance(raised, RemoteToolError) else None
    if not isinstance(cause, MCPError) or cause.code in _OF_CONNECTION or not is_untouched(outcome, entry, cause.error):
        return None
    return MCPError(cause.code, clean(cause.message), cause.error.data)


def is_untouched(outcome: Outcome, entry: ToolEntry, original: BaseModel) -> bool:
    """Return whether no hook, runner or limit of the host has changed the result of another server."""
    most = entry.max_result_chars
    is_others = isinstance(outcome, Completed) and (outcome.source != "tool" or outcome.kept is not None)
    if entry.post or entry.runners or is_others:
        return False
    return most is None or len(original.model_dump_json(by_alias=True)) <= most


def text_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=clean(text))], structured_content=structured)


def error_result(text: str, structured: Any = None) -> types.CallToolResult:
    """Return a result that says what went wrong."""
    content: list[types.ContentBlock] = [types.TextContent(text=clean(text))]
    return types.CallToolResult(content=content, structured_content=structured, is_error=True)


def _block(part: Any) -> types.ContentBlock:
    match part:
        case str():
            return types.TextContent(text=clean(part))
        case Media():
            return block_of(part)
        case types.TextContent():
            return part.model_copy(update={"text": clean(part.text)})
        case _:
            return part


def clean(text: str) -> str:
    """Return the text itself, or with question marks for halves of surrogate pairs, which no wire can carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _cleaned(shape: Any) -> Any:
    match shape:
        case str():
            return clean(shape)
        case list():
            return [_cleaned(part) for part in cast("list[Any]", shape)]
        case dict():
            return {clean(name): _cleaned(part) for name, part in cast("dict[str, Any]", shape).items()}
        case _:
            return shape
