"""How big a strict schema may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """OpenAI's limits for one schema. Source: https://platform.openai.com/docs/guides/structured-outputs."""

    properties: int = 5000
    depth: int = 10
    text: int = 120_000
    values: int = 1000
    long_enum: int = 250
    long_enum_text: int = 15_000

    def exceeded(self, schema: Mapping[str, Any]) -> str | None:
        """Return the limit that `schema` breaks, in words; None when it is within all of them."""
        parts = list(_parts(schema))
        names = [name for part in parts for key in ("properties", "$defs") for name in part.get(key, ())]
        enums = [cast("list[Any]", part["enum"]) for part in parts if isinstance(part.get("enum"), list)]
        consts = [part["const"] for part in parts if "const" in part]
        texts = [*names, *(value for values in enums for value in values), *consts]
        if sum(len(part.get("properties", ())) for part in parts) > self.properties:
            return f"at most {self.properties} properties"
        if _depth(schema, schema, ()) > self.depth:
            return f"at most {self.depth} levels of objects in objects"
        if sum(len(text) for text in texts if isinstance(text, str)) > self.text:
            return f"at most {self.text} characters of names and values"
        if sum(map(len, enums)) > self.values:
            return f"at most {self.values} values in its enums"
        if any(len(v) > self.long_enum and len("".join(map(str, v))) > self.long_enum_text for v in enums):
            return f"at most {self.long_enum_text} characters in an enum of more than {self.long_enum} values"
        return None


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    """Yield every schema in `schema`, itself first."""
    if not isinstance(schema, Mapping):
        return
    named = cast("Mapping[str, Any]", schema)
    yield named
    for key in ("properties", "$defs"):
        for part in named.get(key, {}).values():
            yield from _parts(part)
    yield from _parts(named.get("items"))
    for part in named.get("anyOf", ()):
        yield from _parts(part)


def _depth(schema: object, root: Mapping[str, Any], inside: tuple[str, ...]) -> int:
    """Return how many objects are in each other, each definition of a recursive type counted once."""
    if not isinstance(schema, Mapping):
        return 0
    named = cast("Mapping[str, Any]", schema)
    ref = named.get("$ref")
    if isinstance(ref, str):
        target = root.get("$defs", {}).get(ref.removeprefix("#/$defs/"))
        return 0 if ref in inside else _depth(target, root, (*inside, ref))
    within = [*named.get("properties", {}).values(), named.get("items"), *named.get("anyOf", ())]
    deepest = max((_depth(part, root, inside) for part in within), default=0)
    return deepest + ("properties" in named)
