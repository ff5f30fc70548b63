"""Docstrings: the first paragraph, the text about each parameter and the result, and the keys that it lists.

griffe reads the styles of Google, NumPy and Sphinx, and knows each by its looks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
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
_KEY_LINE = re.compile(  # `file_content (str): What it is`
    r"""^(?P<indent>\ *)(?P<bullet>[-*]\ )?["'`]*(?P<name>[^\W\d][\w-]*(?:\(\w+\))?)["'`]*
    (?:\ \((?P<type>[^()\n]+)\))?\ ?:""",
    re.VERBOSE | re.MULTILINE,
)
_KEY_TYPE = re.compile(r"[\w.,|\ \[\]]+")
_NO_KEYS = frozenset({"dict", "object", "mapping", "json"})  # what a line says that stands before the keys
_OLD_TYPES = re.compile(r"\b(?:typing\.)?(?:List|Dict|Tuple|Set)\b")
_MOST_KEYS = 100


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
        kind = kind + rest if _KEY_TYPE.fullmatch(kind + rest) else "Any"
        kind = _OLD_TYPES.sub(lambda old: old[0].rpartition(".")[2].lower(), kind)
        name = found["name"] if found["name"].isidentifier() else repr(found["name"])
        key = _Key(level, name + ("?" if ", optional" in type_text else ""), kind, [])
        (open_keys[-1].inside if open_keys else top).append(key)
        open_keys.append(key)
    return top


def _lines_of_keys(text: str) -> list[tuple[int, re.Match[str]]]:
    """Return the lines that begin with a key, each with its level; one without a type has others with one beside it."""
    lines = [
        (len(found["indent"]) + bool(found["bullet"]), found) for found in list(_KEY_LINE.finditer(text))[:_MOST_KEYS]
    ]
    levels = {level for level, found in lines if _KEY_TYPE.fullmatch(found["type"] or "")}
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
