"""Texts of an OpenAPI document for models: one line, without markup, within a budget; and names that models can use."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

_MOST_NAME = 64
_MARKUP = re.compile(r"<[^<>]{1,200}>|!\[[^\]]{0,200}\]\([^)]{0,500}\)|\[([^\]]{1,200})\]\([^)]{0,500}\)|[*`]{1,3}")
_READ = 4_000  # characters of a text of which a line is made
_SENTENCE = re.compile(r"(?<=[.!?])\s")


def brief(text: object, most: int) -> str:
    """Return a text on one line without markup; what is too long ends after a sentence, or is cut."""
    if not isinstance(text, str):
        return ""
    line = " ".join(_MARKUP.sub(lambda found: found[1] or "", text[:_READ]).split())
    if len(line) <= most:
        return line
    beginning = ""
    for sentence in _SENTENCE.split(line):
        if len(beginning) + len(sentence) + 1 > most:
            break
        beginning = f"{beginning} {sentence}".strip()
    return beginning or f"{line[: most - 1].rstrip()}…"


def words(text: str) -> str:
    """Return a text as a name: letters, digits and single underscores."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")


def argument_name(name: str, place: str, used: Mapping[str, object]) -> str:
    """Return the name of an argument, which no other one of the operation has."""
    wanted = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:_MOST_NAME] or place
    wanted = f"{place}_{wanted}" if wanted[0].isdigit() else wanted
    free = wanted if wanted not in used else f"{wanted}_{place}"
    number = 2
    while free in used:
        free, number = f"{wanted}_{place}_{number}", number + 1
    return free


def operation_names(operations: Sequence[tuple[str, str, str]], prefix: str) -> list[str]:
    """Return a name for each operation, of at most 64 characters, each another.

    A name depends on its own operation alone, but where several would have one name: each of these ends in a part of
    the digest of its method and path.

    Args:
        operations: The id, the method and the path of each.
        prefix: The beginning of each name.
    """
    wanted = [f"{prefix}{_wanted(*operation)}" for operation in operations]
    many = Counter(name.lower()[:_MOST_NAME] for name in wanted)
    return [
        name if len(name) <= _MOST_NAME and many[name.lower()] == 1 else _with_digest(name, f"{method} {path}")
        for name, (_, method, path) in zip(wanted, operations, strict=True)
    ]


def _wanted(operation_id: str, method: str, path: str) -> str:
    name = words(operation_id) or f"{method.lower()}_{words(path)}".rstrip("_")
    return f"op_{name}" if name[0].isdigit() else name


def _with_digest(name: str, source: str) -> str:
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return f"{name[: _MOST_NAME - 9].rstrip('_')}_{digest}"
