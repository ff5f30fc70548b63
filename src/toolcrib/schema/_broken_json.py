"""Words for JSON text that cannot be read: where it is cut, or what was sent in its place."""

from __future__ import annotations

import re

from toolcrib._numbers import count_text

_ONE_OBJECT = "Send the arguments as one JSON object"
_SHOWN = 30  # characters before the place where it is cut
_PLACE = re.compile(r" at line (\d+) column (\d+)$")
_CALL = re.compile(r"\s*[A-Za-z_][\w.]*\(")
_WORDS = re.compile(r"\s*[^\W\d_][^{}\[\]]*[{\[]")
_PYTHON = re.compile(r"\b(?:None|True|False)\b|'")


def fault_of_json(raw: str, error: str, quoted: bool) -> str:
    """Explain why a text is not valid JSON, and what to send.

    Args:
        raw: The text.
        error: The parser's error: `EOF while parsing a string at line 1 column 23`.
        quoted: Whether some of the text may be in the message; not where an argument is secret.
    """
    if raw.lstrip().startswith("```"):
        return "not valid JSON: it is in a Markdown fence. Send the JSON object alone, from { to }"
    if error.startswith("EOF"):
        inside = error.removeprefix("EOF while parsing ").partition(" at line")[0]
        after = f": `{raw[-_SHOWN:]}`" if quoted else ""
        cut = f"it is cut in the middle of {inside}, after {count_text(len(raw), 'character')}{after}"
        return f"not valid JSON: {cut}. Send all of it again, as one JSON object"
    if _CALL.match(raw):
        return "not valid JSON: it is a call in Python. Send its arguments alone, by name, as one JSON object"
    at = _place(raw, error)
    if at is not None and error.startswith("trailing characters"):
        more = f" with `{raw[at : at + _SHOWN]}`" if quoted else ""
        return f"not valid JSON: it goes on after its end{more}. Send one JSON object alone, from {{ to }}"
    if _WORDS.match(raw):
        return "not valid JSON: it begins with other words. Send the JSON object alone, from { to }"
    found = None if at is None else _PYTHON.search(raw, max(0, at - 2), at + 6)
    if found is not None:
        return (
            f"not valid JSON: it has {found[0]} as Python does{error[error.rindex(' at line') :]}. JSON has double "
            f"quotes, null, true and false. {_ONE_OBJECT}"
        )
    return f"not valid JSON: {error}. {_ONE_OBJECT}"


def holds_json(value: object, begin: str) -> bool:
    """Return whether a value is a text of what should have been sent itself; `begin` is how that begins."""
    return isinstance(value, str) and value.lstrip()[:1] == begin


def _place(raw: str, error: str) -> int | None:
    """Return the index that an error names; None where it names none."""
    found = _PLACE.search(error)
    if found is None:
        return None
    before = raw.encode("utf-8", "replace").split(b"\n")[: int(found[1])]
    return len(b"\n".join([*before[:-1], before[-1][: int(found[2]) - 1]]).decode("utf-8", "replace"))
