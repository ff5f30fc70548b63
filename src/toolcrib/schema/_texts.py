"""Texts of a definition, for a search: what it says of arguments and result, read without making a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from toolcrib.schema._markers import is_field

_NAME = re.compile(r"[A-Za-z_]\w*")
_SILENT = ("builtins", "toolcrib")
_DEEPEST = 4  # types inside of types
_LONGEST = 100  # values of one enum, keys of one type


def annotation_texts(annotation: Any, names: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the words of a type: what a Literal or an Enum allows, the keys of a record, descriptions.

    Args:
        names: The objects that names in an annotation that is a text stand for.
    """
    if isinstance(annotation, type):
        if depth < _DEEPEST and annotation.__module__.partition(".")[0] not in _SILENT:
            yield from _record_texts(annotation, depth)
    elif isinstance(annotation, str):
        yield annotation
        for name in _NAME.findall(annotation):
            if isinstance(names.get(name), type):
                yield from annotation_texts(names[name], names, depth + 1)
    elif is_field(annotation):
        yield annotation.description or ""
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation)[:_LONGEST])
    elif depth < _DEEPEST:
        for part in get_args(annotation):
            yield from annotation_texts(part, names, depth + 1)


def _record_texts(record: Any, depth: int) -> Iterator[str]:
    """Yield the values of an Enum, or the keys of a class with annotations, and what these say."""
    if issubclass(record, Enum):
        yield from (str(member.value) for member in list[Enum](record)[:_LONGEST])
        return
    fields: Mapping[str, Any] = getattr(record, "model_fields", None) or getattr(record, "__annotations__", {})
    for key in list(fields)[:_LONGEST]:
        yield key
        field = fields[key]
        described = is_field(field)
        yield (field.description or "") if described else ""
        yield from annotation_texts(field.annotation if described else field, {}, depth + 1)
