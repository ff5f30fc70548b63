"""Values of arguments: the texts, numbers and keys in JSON shapes, each with its path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from toolcrib.provenance._question import path_of
from toolcrib.provenance._texts import flat

_WORD: Final = re.compile(r"\w")
MOST_VALUES: Final = 2_000
"""The values of one call that are looked up."""


def leaves_of(
    value: Any, path: str = "", *, with_flags: bool = False, with_keys: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers of a JSON value, with their paths.

    Args:
        value: The value.
        path: Where it is.
        with_flags: Whether true, false, nothing and what is empty are among them; they have no source.
        with_keys: Whether the keys of objects are among them, each with the path of its object.
    """
    if isinstance(value, Mapping) and (value or not with_flags or not path):
        for key, item in cast("Mapping[str, Any]", value).items():
            if with_keys and path:
                yield path, str(key)
            below = path_of(path, str(key))
            yield from leaves_of(item, below, with_flags=with_flags, with_keys=with_keys)
    elif isinstance(value, list) and (value or not with_flags):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from leaves_of(item, f"{path}[{number}]", with_flags=with_flags, with_keys=with_keys)
    elif with_flags or has_words(value):
        yield path, value


def keys_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of the objects in a JSON value, with the paths of the objects."""
    items = cast("Mapping[str, Any]", value).items() if isinstance(value, Mapping) else ()
    for key, item in items:
        below = path_of(path, str(key))
        yield path or below, str(key)
        yield from keys_of(item, below)
    for number, item in enumerate(cast("list[Any]", value) if isinstance(value, list) else ()):
        yield from keys_of(item, f"{path}[{number}]")


def texts_that_leave(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield the values and keys of arguments as texts, each with its path; then all of them joined, and all values."""
    texts = [(path, str(value)) for path, value in leaves_of(arguments, with_keys=True)]
    yield from ((path, text, False) for path, text in texts)
    joined = " ".join(text for _, text in texts)
    values = " ".join(str(value) for _, value in leaves_of(arguments))
    for text in dict.fromkeys([joined, values]) if len(texts) > 1 else ():
        yield texts[-1][0], text, True


def has_words(value: Any) -> bool:
    if isinstance(value, str):
        return _WORD.search(value if value.isascii() else flat(value)) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown_value(value: Any) -> str:
    """Return a value as a question shows it."""
    return (
        value if isinstance(value, str) and value else json.dumps(value) if not isinstance(value, float) else str(value)
    )
