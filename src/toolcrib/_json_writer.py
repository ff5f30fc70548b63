"""Writers of JSON shapes as text, made once, as `json.dumps` makes its encoder for every text; and readers of JSON."""

from __future__ import annotations

import json
import json.encoder
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

_LONGEST_KEY = 200  # characters of a key in an error; callers may make up any
_TWICE: Final = ": sent more than once; send it once"
_BOM: Final = "\ufeff".encode()
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""The escapes of JSON from the left: a pair of surrogates, one alone (the group), any other."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class RepeatedKeyError(ValueError):
    """An object of JSON text has a key twice: which of its values was meant is not known."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object that has these pairs; an `object_pairs_hook` of `json`.

    Raises:
        RepeatedKeyError: A key stands twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise RepeatedKeyError(key[:_LONGEST_KEY] + _TWICE)
    return found


def read_json(text: str | bytes) -> Any:
    """Return the JSON shapes of a text by which something is decided.

    Raises:
        RepeatedKeyError: An object has a key twice.
        ValueError: The text is not JSON.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, object_pairs_hook=unique_keys)


def read_valid_json(text: bytes) -> Any:
    """Return the JSON shapes of a text, with U+FFFD for halves of surrogate pairs, which no store and no answer takes.

    Raises:
        RepeatedKeyError: An object has a key twice.
        ValueError: The text is not JSON.
        RecursionError: It is nested too deep.
    """
    return read_json(_valid_escapes(text))


def repeated_key(text: str | bytes) -> str:
    """Return a key that an object of a JSON text has twice; empty for unique keys, or a text that cannot be read."""
    try:
        read_json(text)
    except RepeatedKeyError as error:
        return str(error).removesuffix(_TWICE)
    except (ValueError, RecursionError):
        pass
    return ""


def valid_json(text: bytes) -> bytes:
    """Return JSON text without a byte order mark, and with U+FFFD for halves of surrogate pairs and odd bytes."""
    text = text.removeprefix(_BOM)
    return _valid_escapes(text if text.isascii() else text.decode("utf-8", "replace").encode())


def _valid_escapes(text: bytes) -> bytes:
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], text) if _SURROGATE.search(text) else text


def valid_text(text: str) -> str:
    """Return a text with U+FFFD in the place of each half of a surrogate pair, which UTF-8 does not have."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def json_writer(*, allow_nan: bool, canonical: bool = False) -> Callable[[Any], str]:
    """Return a writer of JSON shapes, as `json.dumps(shapes, ensure_ascii=False)` writes, at a third of the cost.

    It raises TypeError for what is not a JSON shape and RecursionError for one that holds itself; and, unless they are
    allowed, ValueError for numbers that JSON has not.

    Args:
        canonical: Write ASCII, without spaces, and the keys in order, so that equal shapes give one text.
    """
    comma, colon = (",", ":") if canonical else (", ", ": ")
    try:
        inside = vars(json.encoder)
        text = inside["encode_basestring_ascii" if canonical else "encode_basestring"]
        parts: Callable[[Any, int], tuple[str, ...]] = inside["c_make_encoder"](
            None, None, text, None, colon, comma, canonical, False, allow_nan
        )
        return lambda shape: "".join(parts(shape, 0))
    except (KeyError, TypeError):  # another interpreter, or another version of this one
        return json.JSONEncoder(
            ensure_ascii=canonical,
            allow_nan=allow_nan,
            check_circular=False,
            sort_keys=canonical,
            separators=(comma, colon),
        ).encode
