"""What a model sends for a tool that was defined strictly, as it would have sent it otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolcrib.errors import SchemaError
from toolcrib.formats import WireCall, without_filler
from toolcrib.toolsets import Toolset

__all__ = ["unfilled"]


def unfilled(toolset: Toolset, call: WireCall) -> str | Mapping[str, Any]:
    """Return a call's arguments without the nulls that strict mode has a model say for what it leaves out."""
    raw = call.arguments
    if call.name not in toolset or (isinstance(raw, str) and "null" not in raw):
        return raw
    try:
        value: object = json.loads(raw) if isinstance(raw, str) else raw
        if not isinstance(value, Mapping):
            return raw
        kept = without_filler(cast("Mapping[str, Any]", value), toolset[call.name].parameters)
    except (ValueError, SchemaError):  # which the pipeline says of the call itself
        return raw
    return json.dumps(kept) if isinstance(raw, str) else kept
