"""Pins of a server: its tools as they were when it was first used, and those that have changed since."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import mcp_types as types

from toolcrib.approvals import ToolPins
from toolcrib.calls import differences

__all__ = ["Change", "ServerPins"]

_MOST_LINES: Final = 60  # of a difference that a person is shown
_MOST_CHARS: Final = 500  # of a line
_TYPES: Final = frozenset({"type", "properties", "required", "items", "additionalProperties"})
_NEW: Final = "A tool that is new on its server: a person has to accept it before its description is shown."


class ServerPins:
    """The pins of one server that is open.

    Args:
        store: Where they are kept, or the path of a SQLite file.
        server: The server's name in the store.
    """

    def __init__(self, store: ToolPins | str | Path, server: str) -> None:
        self._given, self.server = store, server
        self._kept: Mapping[str, Any] = {}

    async def read(self, listed: Iterable[types.Tool]) -> None:
        """Read what is kept of the server; when it is used for the first time, these tools are kept."""
        self._kept = await (await self._store()).begin(self.server, {tool.name: _shape(tool) for tool in listed})

    async def _store(self) -> ToolPins:
        if not isinstance(self._given, ToolPins):
            self._given = await asyncio.to_thread(ToolPins, self._given)
        return self._given

    def change_in(self, listed: types.Tool) -> Change | None:
        """Return how a tool differs from what a person knows of it; None where it does not."""
        now, before = _shape(listed), self._kept.get(listed.name)
        return None if now == before else Change(self, listed.name, before, now)

    async def is_accepted(self, change: Change) -> bool:
        """Return whether a change has been accepted meanwhile, by another process perhaps."""
        self._kept = await (await self._store()).of(self.server)
        return self._kept.get(change.name) == change.now

    async def accept(self, change: Change, approver: str) -> None:
        """Keep a tool as it is now."""
        await (await self._store()).keep(self.server, change.name, change.now, approver)
        self._kept = {**self._kept, change.name: change.now}


@dataclass(frozen=True, slots=True)
class Change:
    """A tool that a server describes in another way than a person knows it, or that is new.

    Attributes:
        pins: The pins of the server.
        name: The tool's name on the server.
        before: The tool as it was, in the shapes of the protocol; None when it is new.
        now: The tool as the server lists it.
    """

    pins: ServerPins
    name: str
    before: Mapping[str, Any] | None
    now: Mapping[str, Any]

    @property
    def reason(self) -> str:
        """Why a person is asked."""
        if self.before is None:
            return f"`{self.name}` is new on the server {self.pins.server} since it was first used"
        return f"the server {self.pins.server} describes `{self.name}` in another way than when it was first used"

    def text(self) -> str:
        """Return the difference in lines, for the person who is asked."""
        lines = [f"{line:.{_MOST_CHARS}}" for line in islice(self._lines(), _MOST_LINES + 1)]
        return "\n".join([*lines[:_MOST_LINES], "and more"] if len(lines) > _MOST_LINES else lines)

    def _lines(self) -> Iterator[str]:
        return differences(dict(self.before or {}), dict(self.now))

    def shown(self) -> types.Tool:
        """Return the tool as models are shown it until a person has accepted it: as it was, or without any text."""
        if self.before is not None:
            return types.Tool.model_validate(self.before)
        schema = _without_texts(self.now.get("inputSchema") or {})
        return types.Tool.model_validate({"name": self.name, "description": _NEW, "inputSchema": schema})


def _shape(tool: types.Tool) -> dict[str, Any]:
    """Return a tool as JSON shapes, without what comes and goes and no model is shown."""
    return json.loads(tool.model_dump_json(by_alias=True, exclude_none=True, exclude={"icons"}))


def _without_texts(schema: Any) -> Any:
    """Return a JSON schema with its types alone: every text in it may be an instruction to a model."""
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    held = cast("Mapping[str, Any]", schema)
    made: dict[str, Any] = {}
    for key, value in held.items():
        if key == "properties" and isinstance(value, Mapping):
            made[key] = {name: _without_texts(part) for name, part in cast("Mapping[str, Any]", value).items()}
        elif key in ("items", "additionalProperties"):
            made[key] = _without_texts(value)
        elif key in _TYPES:
            made[key] = value
    return made
