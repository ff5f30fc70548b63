"""Names of parameters as a provider takes them, and back: one that it refuses is sent under another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast
from unicodedata import combining, normalize

from toolcrib.jsonschema import described

_LONGEST = 56  # and a number, within the 64 characters that each provider takes


def sent_names(parameters: Mapping[str, Any], allowed: str) -> dict[str, str]:
    """Return the names under which arguments are sent, by their own names; only those that the provider refuses."""
    names: Mapping[str, Any] = parameters.get("properties") or {}
    refused = _refused(tuple(names), allowed)
    if not refused:
        return {}
    used, count, sent = set(names), Counter[str](), dict[str, str]()
    for name in refused:
        plain = "".join(character for character in normalize("NFKD", name) if not combining(character))
        base = re.sub(r"[^A-Za-z0-9_]", "_", plain)[:_LONGEST]
        base = base if base and not base[0].isdigit() else f"_{base}"
        free = base
        while free in used:
            count[base] += 1
            free = f"{base}_{count[base] + 1}"
        used.add(free)
        sent[name] = free
    return sent


@lru_cache(maxsize=1_024)
def _refused(names: tuple[str, ...], allowed: str) -> list[str]:
    """Return the names that a provider refuses; kept, because every call of a tool asks it of the same names."""
    return [name for name in names if not re.fullmatch(allowed, name)]


def sent_schema(parameters: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the schema with the names that are sent; the description of such a parameter says its own name."""
    if not names:
        return parameters
    properties: dict[str, Any] = {}
    for name, part in parameters["properties"].items():
        mapped = name in names and isinstance(part, Mapping)
        properties[names.get(name, name)] = described(dict(cast("Any", part)), f"`{name}`") if mapped else part
    return {
        **parameters,
        "properties": properties,
        "required": [names.get(name, name) for name in parameters.get("required", ())],
    }


def own_arguments(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return arguments under their own names, given those under the names that were sent."""
    own_names = {sent: name for name, sent in names.items()}
    return {own_names.get(key, key): value for key, value in arguments.items()}
