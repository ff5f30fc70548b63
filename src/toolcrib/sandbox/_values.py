"""Sizes of values of JSON shapes, as JSON and in memory: what is small as text may be large as objects."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

_CONTAINER = 64  # bytes that an empty list or dict takes
_ITEM = 40  # bytes that a number takes, and its place in a list
_PUNCTUATION = 2  # characters that an item costs in JSON


def json_bytes(value: Any) -> bytes:
    """Return the JSON of a value of JSON shapes."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # a lone surrogate, which JSON can write as an escape
        return json.dumps(value).encode()


def json_size(value: Any) -> int:
    """Return about how many characters a value of JSON shapes takes as JSON."""
    if isinstance(value, list | dict):
        return len(json_bytes(value))
    return len(value) if isinstance(value, str) else _PUNCTUATION


def memory_size(value: Any) -> int:
    """Return about how many bytes of memory a value of JSON shapes takes, or somewhat more."""
    if isinstance(value, list | dict):
        return memory_size_of_json(json_bytes(value))
    return len(value) if isinstance(value, str) else _ITEM


def memory_size_of_json(body: bytes) -> int:
    """Return about how many bytes of memory the objects take that a JSON text stands for, or somewhat more."""
    return len(body) + _CONTAINER * (body.count(b"{") + body.count(b"[")) + _ITEM * body.count(b",")
