"""What each provider's module fills in, and the checks that all of them share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.errors import FormatError

__all__ = ["ProviderFormat", "check_strict", "listed"]


def listed(definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the definitions as they are: most providers take a list of them."""
    return definitions


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """How one provider wants tools.

    Attributes:
        title: The provider's name, for messages.
        names: What a tool's name may look like, as a regular expression that has to match all of it.
        names_rule: The same in words.
        define: `(name, description, parameters, strict)` to the definition of one tool.
        strict: Whether it has a mode that holds the model to the schema.
        wrap: A list of definitions to what the provider's `tools` parameter takes.
    """

    title: str
    names: str
    names_rule: str
    define: Callable[[str, str, Mapping[str, Any], bool], dict[str, Any]]
    strict: bool = True
    wrap: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = listed

    def check(self, name: str, strict: bool) -> None:
        """Raise FormatError for a name that the provider refuses, or a strict mode that it does not have."""
        if not re.fullmatch(self.names, name):
            raise FormatError(name, self.title, f"a name takes {self.names_rule}; give the tool another one")
        if strict and not self.strict:
            raise FormatError(name, self.title, "it has no strict mode; leave `strict` out")


def check_strict(name: str, title: str, parameters: Mapping[str, Any], *, all_required: bool) -> None:
    """Raise FormatError where strict mode cannot hold: an open object, or with `all_required` an optional property."""
    for path, schema in _objects(parameters, ""):
        if schema.get("additionalProperties") is not False:
            place = f"`{path}`" if path else "the arguments"
            raise FormatError(name, title, f"strict mode takes no open objects, and {place} may hold any names")
        optional = sorted(set(schema.get("properties", ())) - set(schema.get("required", ())))
        if all_required and optional:
            where = f"{path}.{optional[0]}".lstrip(".")
            raise FormatError(name, title, f"strict mode takes no optional properties, and `{where}` is one")


def _objects(schema: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every schema of an object in `schema` with the path to it."""
    if isinstance(schema, list):
        for part in cast("list[Any]", schema):
            yield from _objects(part, path)
    if not isinstance(schema, Mapping):
        return
    named = cast("Mapping[str, Any]", schema)
    kind = named.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind):
        yield path, named
    for key in ("properties", "$defs"):
        for name, part in named.get(key, {}).items():
            yield from _objects(part, name if key == "$defs" else f"{path}.{name}".lstrip("."))
    for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf"):
        yield from _objects(named.get(key), f"{path}[]" if key in ("items", "prefixItems") else path)
