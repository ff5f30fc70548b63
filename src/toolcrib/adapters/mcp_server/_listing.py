"""Tools as `tools/list` shows them: schemas, hints, and the shape of structured results."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

import mcp_types as types

from toolcrib.adapters.mcp_server._media import is_block_type
from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import drops_keywords, well_formed, wrapped
from toolcrib.jsonschema.checker import Checker, checker_of
from toolcrib.tools import output_schema
from toolcrib.toolsets import ToolEntry

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
