"""Every function definition in the data of `bfcl-eval`, with its own words for types made into those of JSON Schema."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from toolcrib.formats import NO_OPTIONS, ProviderOptions

_TYPES = {
    "dict": "object", "HashMap": "object", "float": "number", "double": "number", "long": "integer",
    "tuple": "array", "Array": "array", "ArrayList": "array", "String": "string", "char": "string", "": "string",
    "Boolean": "boolean",
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """What a definition is made from."""

    name: str
    description: str
    parameters: dict[str, Any]
    return_schema: dict[str, Any] | None
    provider: ProviderOptions = NO_OPTIONS


def load_functions() -> list[Function]:
    """Return the definitions of all categories, each once."""
    found: dict[str, Function] = {}
    for source in _sources():
        made = Function(
            re.sub(r"[^a-zA-Z0-9_-]", "_", source["name"])[-64:],  # theirs have dots in them
            source["description"],
            _schema(source["parameters"]),
            _schema(source["response"]) if "response" in source else None,
        )
        found[json.dumps(source, sort_keys=True)] = made
    return list(found.values())


def _sources() -> Iterator[dict[str, Any]]:
    data = resources.files("bfcl_eval") / "data"
    for folder, field in ((data, "function"), (data / "multi_turn_func_doc", None)):
        for file in folder.iterdir():
            if not file.name.endswith(".json") or file.name == "BFCL_v4_format_sensitivity.json":  # has ids alone
                continue
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                yield from (entry.get(field) or []) if field else [entry]


def _schema(source: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in JSON Schema's words: `any` is a schema without a type."""
    made = {key: value for key, value in source.items() if key not in ("type", "optional")}
    kind = _TYPES.get(source.get("type", "any"), source.get("type", "any"))
    if kind != "any":
        made["type"] = kind
    items = source.get("items", {})
    if isinstance(items, list):  # of a tuple
        made["prefixItems"] = [_schema(part) for part in made.pop("items")]
    elif kind == "array":
        made["items"] = _schema(items) if items else {}
    if "properties" in source:
        made["properties"] = {_ascii(name): _schema(part) for name, part in source["properties"].items()}
    if "required" in source:
        made["required"] = list(map(_ascii, source["required"]))
    return made


def _ascii(name: str) -> str:
    """Return a parameter's name as Anthropic and Gemini take it: one of them is Spanish."""
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
