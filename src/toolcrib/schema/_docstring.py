"""Docstrings: the first paragraph, and what is said about each parameter and the result.

griffe reads the styles of Google, NumPy and Sphinx, and knows each by its looks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, cast

Style: TypeAlias = Literal["google", "numpy", "sphinx"]

_PATTERNS: dict[Style, str] = {  # texts, so that they are compiled when the first docstring is read
    "numpy": r"(?m)^[A-Z][A-Za-z ]*\n-{3,}[ \t]*$",
    "google": (
        r"(?mi)^(?:(?:keyword |other )?(?:args|arguments|params|parameters)|attributes|returns?|yields?|raises|warns|"
        r"receives|examples?|notes?|warnings?|see also|references|todo|deprecated):[ \t]*$"
    ),
    "sphinx": r"(?m)^:[a-z]+[^:\n]*:(?=\s|$)",
}

_RESULTS = ("returns", "yields")
_TYPE = re.compile(r"|[\w.]+|None|[\w.]+ ?[\[|].*", re.DOTALL)  # nothing, a name, `list[int]`, `int | None`


class ParsedDoc(NamedTuple):
    """The parts of a docstring after its first paragraph.

    Attributes:
        parameters: Description by parameter (or attribute) name, each on one line.
        returns: The text about the result, line by line.
    """

    parameters: dict[str, str]
    returns: str


def first_paragraph(text: str) -> str:
    """Return the first paragraph on one line; empty when the docstring begins with a section."""
    starts = [match.start() for pattern in _PATTERNS.values() if (match := re.search(pattern, text))]
    return one_line(text[: min(starts, default=len(text))].split("\n\n", 1)[0])


def docstring_of(target: Any) -> str:
    """Return the whole docstring of a function or class with its indentation removed; a class inherits none."""
    docstring: object = getattr(target, "__doc__", None)
    if not isinstance(docstring, str) and not isinstance(target, type):
        docstring = inspect.getdoc(target)  # a method may inherit
    if not isinstance(docstring, str):
        return ""
    text = docstring.lstrip()
    return inspect.cleandoc(
        f"\n{text}" if re.match(_PATTERNS["google"], text) else docstring
    )  # a first line has no indentation to compare


def one_line(text: str) -> str:
    """Return `text` with every run of white space as one space."""
    return " ".join(text.split())


def styles_of(text: str) -> list[Style]:
    """Return the styles that a docstring may be written in; most have one, plain prose has none."""
    return [style for style, pattern in _PATTERNS.items() if re.search(pattern, text)]


def parse_doc(text: str) -> ParsedDoc:
    """Return the sections of a docstring; empty when it has none or they cannot be read."""
    parameters: dict[str, str] = {}
    returns = ""
    for style in styles_of(text):
        results: list[str] = []
        for kind, name, description in _entries(text, style):
            if kind in ("parameters", "other parameters", "attributes"):
                parameters.setdefault(name.lstrip("*"), one_line(description))
            elif kind in _RESULTS:
                results.append(description)
        returns = returns or "\n".join(results)
    return ParsedDoc(parameters, returns)


def _words_of(item: Any, section: str) -> str:
    """Return the description of an item; for a result with its key, or the words before its colon if not a type."""
    if section not in _RESULTS:
        return item.description
    head, name = str(item.annotation or ""), str(getattr(item, "name", "") or "")
    if name:
        return f"{name}{f' ({head})' if head else ''}: {item.description}"
    if _TYPE.fullmatch(head):
        return item.description
    return f"{head}{')' * (head.count('(') - head.count(')'))}: {item.description}"  # griffe takes the last one off


def _entries(text: str, style: Style) -> Iterator[tuple[str, str, str]]:
    """Yield (section, name, description) for what griffe finds in a docstring of one style."""
    import griffe  # noqa: PLC0415 -- costs as much as pydantic; only tools with a documented parameter pay

    options: dict[str, Any] = {"warnings": False}
    if style == "google":
        text = re.sub(
            _PATTERNS["google"], lambda header: f"\n{header[0]}", text
        )  # griffe wants a blank line before a section
        options |= {"returns_multiple_items": False, "returns_named_value": False}
    try:
        sections = griffe.Docstring(f"\n{text}").parse(style, **options)
    except Exception:  # griffe's parsers on any text: a docstring must not break a tool
        return
    for section in sections:
        items: Any = section.value
        if isinstance(items, list):
            for item in cast("list[Any]", items):
                yield section.kind.value, getattr(item, "name", ""), _words_of(item, section.kind.value)
