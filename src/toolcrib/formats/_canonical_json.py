"""Canonical JSON: what a model or a tool wrote as every server takes it, without NaN and without half characters."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, cast

from pydantic_core import from_json, to_json

from toolcrib._json_writer import valid_text
from toolcrib._short_repr import kind_of
from toolcrib.formats._json_reading import is_object, text_or_empty

_DEEPEST = 200
_BYTES = "toolcrib:bytes"


def canonical(value: Any) -> Any:
    """Return JSON shapes as they are sent: themselves where nothing has to be changed, which is nearly always so.

    NaN and infinity become null, half of a surrogate pair becomes the replacement character, and what is nested more
    deeply than parsers go is left out.
    """
    try:
        written = to_json(value, inf_nan_mode="constants")
    except ValueError:  # a lone surrogate, or something that is not JSON
        written = b"NaN"
    return _cleaned(value) if b"NaN" in written or b"Infinity" in written else value


def _cleaned(value: Any, depth: int = 0) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth == _DEEPEST:
        return None
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        return {_cleaned(key): _cleaned(part, depth + 1) for key, part in named.items()}
    return [_cleaned(part, depth + 1) for part in cast("list[Any]", value)]


def stored(value: Any) -> str:
    """Return JSON shapes as text from which `read_stored` makes them again; bytes in them, too."""
    text = json.dumps(value, ensure_ascii=False, default=_with_bytes)
    return text if valid_text(text) == text else json.dumps(value, default=_with_bytes)  # half a pair is not UTF-8


def read_stored(text: str | bytes) -> Any:
    """Return the value that `stored` wrote."""
    return json.loads(text, object_hook=_without_bytes)


def _with_bytes(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode()}
    raise TypeError(f"{kind_of(value)} has no JSON form")


def _without_bytes(value: dict[str, Any]) -> Any:
    return b64decode(value[_BYTES]) if value.keys() == {_BYTES} and isinstance(value[_BYTES], str) else value


def typed(blocks: Iterable[Mapping[str, Any]], kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return blocks that have a type: one that came without is known by a key of it, or else left out.

    Args:
        blocks: Items, blocks or parts.
        kinds: The types by the key that only they have.
    """
    blocks_read = list[dict[str, Any]]()
    for block in blocks:
        type = text_or_empty(block.get("type")) or next((kinds[key] for key in kinds if block.get(key)), "")
        if type:
            blocks_read.append({**block} if type is block.get("type") else {**block, "type": type})
    return blocks_read


def arguments_text(raw: object) -> str:
    """Return a call's arguments as the text of one JSON object: unchanged where they are one, else `{}`."""
    if isinstance(raw, str) and isinstance(_read(raw), dict):
        return raw
    return json.dumps(canonical(arguments_object(raw)), ensure_ascii=False)


def arguments_object(raw: object) -> dict[str, Any]:
    """Return a call's arguments as one JSON object, which is still to be made canonical; empty where nothing came."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return {}
    if isinstance(raw, dict):
        return cast("dict[str, Any]", raw)
    return dict(raw) if is_object(raw) else {}


def _read(text: str) -> object:
    try:
        return from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        return None


def raw_arguments(raw: object) -> str | Mapping[str, Any]:
    """Return a call's arguments as received: an object, or JSON text, in which a half character is an escape."""
    if isinstance(raw, str):
        if raw.isascii():
            return raw
        joined = raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "backslashreplace").decode()
    if is_object(raw) and canonical(raw) is raw:
        return raw
    try:
        return json.dumps(raw, default=str)
    except (ValueError, RecursionError):
        return '"nested too deeply"'
