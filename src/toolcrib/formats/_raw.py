"""No provider's format: the three things that all of them are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.formats._format import ProviderFormat

__all__ = ["RAW"]


def _define(name: str, description: str, parameters: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": dict(parameters)}


RAW = ProviderFormat("raw", r".+", "any characters", _define, strict=False)
