"""Listings of tools for a program's author, in as much detail as there is room for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from toolcrib.errors import SchemaError, SchemaTooLarge
from toolcrib.jsonschema import SchemaWalk, describe_shape
from toolcrib.schema import comment_of, docstring_text
from toolcrib.toolsets import ToolEntry, words_of

_SENTENCE = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)
_TOO_LARGE = "of a type that is too large to be shown"
_INNER = re.compile(r"[^\[]*\[(.*)\]", re.DOTALL)
_DICT = re.compile(r"\b[Dd]ict\[")
_PLAIN_DICTS = ("dict", "dict | None", "None | dict")
_ROWS = "list[dict]"
_IN_SIGNATURE = re.compile(r"(?i)^[\[(]optional[\])]:?\s*|(?<!\s)\s*\bdefaults to (?:None|True|False|\d+)\.?$")


class Detail(IntEnum):
    """The detail in which a tool is shown; each step leaves out one thing more.

    `ALL` is what `describe` answers: also what the docstring says of the result's keys, and what names say already.
    """

    ALL = 0
    FULL = 1
    NO_ARGUMENTS = 2
    NO_RETURNS = 3
    FIRST_SENTENCE = 4
    SIGNATURES = 5
    NAMES = 6
    SEARCH = 7


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a prompt; every text that shows tools to a model is rendered from one listing.

    A tool is a function on lines of its own, without a blank line: the text is also used as a docstring and a
    description, whose readers end at the first paragraph, and take `Args:` for their own.

    Attributes:
        tools: The tools, by the names that programs use.
        returns: Whether the shape of each result is shown, or what the docstring says of it where no type does, so that
            one call's result can feed another.
        detail: How much of each tool is shown.
        raised: The tools of which more is shown.
        words: How many words of a description are shown in the place of its first sentence.
        streams: Programs take the values of a streaming tool one by one; they get a list otherwise.
        lookup_names: The names by which programs call `search_tools` and `describe`.
        table: The type as which a program gets a table.
    """

    tools: Mapping[str, ToolEntry]
    returns: bool = False
    detail: Detail = Detail.FULL
    raised: Mapping[str, Detail] = field(default_factory=dict[str, Detail])
    words: Mapping[str, int] = field(default_factory=dict[str, int])
    streams: bool = False
    lookup_names: tuple[str, str] = ("search_tools", "describe")
    table: str = _ROWS

    @property
    def has_tables(self) -> bool:
        """True if programs get tables as tables, and a tool returns or takes one."""
        return self.table != _ROWS and any(entry.tool.spec.table_names for entry in self.tools.values())

    def detail_of(self, name: str) -> Detail:
        """Return how much of one tool is shown."""
        return self.raised.get(name, self.detail)

    def functions(self) -> Iterator[str]:
        """Yield the tools of which there is at least a signature, as Python functions without bodies."""
        for name, entry in self.tools.items():
            if self.detail_of(name) <= Detail.SIGNATURES:
                yield self.function(name, entry)

    def names(self) -> Iterator[str]:
        """Yield the tools of which there is nothing but the name."""
        return (name for name in self.tools if self.detail_of(name) == Detail.NAMES)

    def function(self, name: str, entry: ToolEntry, detail: Detail | None = None) -> str:
        """Return one tool as a Python function without a body, in the detail of the listing or another."""
        detail = self.detail_of(name) if detail is None else detail
        shape = self._shape_of(entry) if self.returns and detail < Detail.NO_RETURNS else ""
        head = f"def {name}{self.signature(entry, detail, shape)}"
        if detail >= Detail.SIGNATURES:
            return f"{head}: ..."
        text = entry.description.split()
        description = " ".join(text)
        if detail == Detail.FIRST_SENTENCE and name in self.words:
            description = " ".join([*text[: self.words[name]], "…"])
        elif detail == Detail.FIRST_SENTENCE and (sentence := _SENTENCE.match(description)):
            description = sentence[0]
        words = [description] if description else []
        if detail < Detail.NO_ARGUMENTS:
            words += _arguments(entry, detail)
        lines = [f"{head}:"]
        if words:
            lines.append('    """' + "\n    ".join(docstring_text("\n".join(words)).split("\n")) + '"""')
        if self.returns and detail < Detail.NO_RETURNS:
            text = entry.tool.spec.returns_doc
            text = f"{shape}. {text}" if detail == Detail.ALL and shape and text else shape or text
            lines += [f"    # Returns: {text}"] if text else []
        return "\n".join(lines if words else [*lines, "    ..."])

    def signature(self, entry: ToolEntry, detail: Detail = Detail.ALL, shape: str = "") -> str:
        """Return the signature from its first parenthesis on; the types in a dict are left out for its shape."""
        text = entry.tool.signature.removeprefix(entry.tool.name)
        for name in entry.tool.spec.table_names:
            text = re.sub(rf"\b{name}\b", _ROWS if entry.tool.is_streaming else self.table, text)
        parameters, arrow, returned = text.rpartition(") -> ")
        if not arrow:
            return text
        if entry.tool.is_streaming:
            inner = _INNER.match(returned)
            kind = f"Iterator[{inner[1].partition(', ')[0]}]" if inner else "Iterator"
            return f"{parameters}) -> {kind if self.streams else 'list'}"
        if shape or detail >= Detail.SIGNATURES:
            returned = _with_plain_dicts(returned)
        return f"{parameters})" if shape and returned in _PLAIN_DICTS else f"{parameters}) -> {returned}"

    def _shape_of(self, entry: ToolEntry) -> str:
        """Return the shape of a result, from its type or else its docstring; empty where there is no more to it."""
        try:
            schema = entry.return_schema
            shape = describe_shape(schema, entry.name) if schema else ""
            if "{" not in shape:  # the signature shows it already
                shape = entry.tool.spec.documented_shape
        except SchemaTooLarge:
            return _TOO_LARGE
        except SchemaError:
            return ""
        if not shape or not entry.tool.is_streaming:
            return shape
        return f"{'Iterator' if self.streams else 'list'}[{shape}]"


def _with_plain_dicts(text: str) -> str:
    """Return a type with `dict` for each `dict[...]`."""
    parts: list[str] = []
    at = 0
    while found := _DICT.search(text, at):
        parts.append(text[at : found.start()] + "dict")
        at, depth = found.end(), 1
        while depth and at < len(text):
            depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
    return "".join([*parts, text[at:]])


def _arguments(entry: ToolEntry, detail: Detail) -> list[str]:
    try:
        schema = entry.parameters
    except SchemaError:
        return []
    properties: Mapping[str, Any] = schema.get("properties", {})
    walk = SchemaWalk(schema, entry.name)
    known = set(words_of(" ".join([entry.name, entry.description, *properties])))
    lines: list[str] = []
    for name, part in properties.items():
        description: str = part.get("description", "")
        words = comment_of(part) if entry.tool.spec.is_of_schema else " ".join(description.split())
        if detail > Detail.ALL:
            words = _IN_SIGNATURE.sub("", words) if "default" in part else words
            words = "" if known.issuperset(words_of(words)) else words
        texts = [text for text in (_inner_shape(part, walk), words) if text]
        if texts:
            lines.append(f"{name}: {'. '.join(texts)}")
    return lines


def _inner_shape(part: Mapping[str, Any], walk: SchemaWalk) -> str:
    """Return the shape of an argument that has keys of its own: a type's name does not show them."""
    try:
        shape = describe_shape(part, walk=walk)
    except SchemaTooLarge:
        return _TOO_LARGE
    return shape if "{" in shape else ""
