"""Keys of a result, as the docstring of a tool lists them: `file_content (str): What it is`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

_LINE = re.compile(
    r"""^(?P<indent>\ *)(?P<bullet>[-*]\ )?["'`]*(?P<name>[^\W\d][\w-]*(?:\(\w+\))?)["'`]*
    (?:\ \((?P<type>[^()\n]+)\))?\ ?:""",
    re.VERBOSE | re.MULTILINE,
)
_TYPE = re.compile(r"[\w.,|\ \[\]]+")
_NO_KEYS = frozenset({"dict", "object", "mapping", "json"})  # what a line says that stands before the keys
_OLD_TYPES = re.compile(r"\b(?:typing\.)?(?:List|Dict|Tuple|Set)\b")
_MOST_KEYS = 100


class _Key(NamedTuple):
    level: int
    name: str
    type: str
    inside: list[_Key]


def documented_shape(text: str, schema: Mapping[str, Any] | None) -> str:
    """Return the shape of a result by the keys that a docstring lists: `{file_content: str, sizes?: list[int]}`.

    Empty where it lists none, or the type of the result is not that of a plain dict.

    Args:
        text: The docstring's text about the result, line by line.
        schema: The JSON schema of the result.
    """
    kinds = () if schema is None else schema.get("type")
    if schema is None or kinds not in ("object", ["object", "null"]) or schema.get("properties"):
        return ""
    keys = _keys_in(text)
    if not keys:
        return ""
    shape = _shape_of(keys, schema.get("additionalProperties"))
    return shape if kinds == "object" else f"{shape} | None"


def _keys_in(text: str) -> list[_Key]:
    """Return the keys of the result, each with those that are listed below it and further in."""
    top: list[_Key] = []
    open_keys: list[_Key] = []
    for level, found in _lines_of_keys(text):
        while open_keys and open_keys[-1].level >= level:
            open_keys.pop()
        type_text = found["type"] or "Any"
        kind, _, rest = type_text.partition(", optional")
        kind = kind + rest if _TYPE.fullmatch(kind + rest) else "Any"
        kind = _OLD_TYPES.sub(lambda old: old[0].rpartition(".")[2].lower(), kind)
        name = found["name"] if found["name"].isidentifier() else repr(found["name"])
        key = _Key(level, name + ("?" if ", optional" in type_text else ""), kind, [])
        (open_keys[-1].inside if open_keys else top).append(key)
        open_keys.append(key)
    return top


def _lines_of_keys(text: str) -> list[tuple[int, re.Match[str]]]:
    """Return the lines that begin with a key, each with its level; one without a type has others with one beside it."""
    lines = [(len(found["indent"]) + bool(found["bullet"]), found) for found in list(_LINE.finditer(text))[:_MOST_KEYS]]
    levels = {level for level, found in lines if _TYPE.fullmatch(found["type"] or "")}
    return [
        (level, found)
        for level, found in lines
        if level in levels and (found["type"] or (found["name"].lower() not in _NO_KEYS and not _is_note(found)))
    ]


def _is_note(found: re.Match[str]) -> bool:
    """Return whether a line begins like a sentence about the result: `Note: ...`."""
    return found["name"][0].isupper() and found["name"] == found[0].strip(" :")


def _shape_of(keys: list[_Key], values: Any) -> str:
    """Return the shape of an object with these keys; `values` is the schema of its values, where there is one."""
    parts: list[str] = []
    for key in keys:
        text = key.type
        if key.inside:
            inner = cast("Mapping[str, Any]", values).get("additionalProperties") if _is_object(values) else None
            text = _shape_of(key.inside, inner)
            if "list" in key.type:
                text = f"list[{text}]"
            elif _is_object(inner):  # its keys are not known, and those of each of its values are
                text = f"dict[str, {text}]"
        parts.append(f"{key.name}: {text}")
    return f"{{{', '.join(parts)}}}"


def _is_object(schema: Any) -> bool:
    return isinstance(schema, Mapping) and cast("Mapping[str, Any]", schema).get("type") == "object"
