"""No provider's format: the three things that all of them are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.formats._format import ToolFormat
from toolcrib.formats._wire import Item

__all__ = ["RAW"]


class _Raw(ToolFormat):
    title = "raw"
    names = r".+"
    names_rule = "any characters"
    strict = False

    def define(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        strict: bool,
        returns: Mapping[str, Any] | None,
    ) -> Item:
        made: Item = {"name": name, "description": description, "parameters": dict(parameters)}
        return made


RAW = _Raw()
