"""Listings of tools for a program's author, in as much detail as there is room for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from toolcrib.errors import SchemaError, SchemaTooLarge
from toolcrib.schema import describe_shape
from toolcrib.toolsets import ToolEntry

__all__ = ["Detail", "Listing"]

_SENTENCE = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)
_TOO_LARGE = "of a type that is too large to be shown"
_INNER = re.compile(r"\[(.*)\]", re.DOTALL)


class Detail(IntEnum):
    """The detail in which each tool is shown; each step leaves out one thing more."""

    FULL = 0
    NO_ARGUMENTS = 1
    NO_RETURNS = 2
    FIRST_SENTENCE = 3
    SIGNATURES = 4
    NAMES = 5
    SEARCH = 6


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a prompt; every text that shows tools to a model is rendered from one listing.

    Attributes:
        tools: The tools, by the names that programs use.
        returns: Whether the shape of each result is shown, or what the docstring says of it where no type does, so that
            one call's result can feed another.
        detail: How much of each tool is shown.
        compact: Without blank lines, and arguments as comments: for a docstring or a description, whose readers take
            `Args:` for their own and end at the first paragraph.
        streams: Programs take the values of a streaming tool one by one; they get a list otherwise.
        lookup_names: The names by which programs call `search_tools` and `describe`.
    """

    tools: Mapping[str, ToolEntry]
    returns: bool = False
    detail: Detail = Detail.FULL
    compact: bool = False
    streams: bool = False
    lookup_names: tuple[str, str] = ("search_tools", "describe")

    def render(self) -> str:
        """Return the tools as Python functions without bodies; only their names, or nothing, at the last details."""
        if self.detail == Detail.SEARCH:
            return ""
        if self.detail == Detail.NAMES:
            return ", ".join(self.tools)
        return ("\n" if self._tight else "\n\n").join(self.functions())

    @property
    def _tight(self) -> bool:
        return self.compact or self.detail >= Detail.SIGNATURES

    def is_longer(self, most: int) -> bool:
        """Return whether the rendered tools take more than `most` characters; found without rendering all of them."""
        if self.detail >= Detail.NAMES:
            return len(self.render()) > most
        for text in self.functions():
            most -= len(text) + 1
            if most < 0:
                return True
        return False

    def functions(self) -> Iterator[str]:
        """Yield each tool as a function."""
        return (self.function(name, entry) for name, entry in self.tools.items())

    def function(self, name: str, entry: ToolEntry) -> str:
        """Return one tool as a Python function without a body."""
        head = f"def {name}{self._parameters(entry)}"
        if self.detail >= Detail.SIGNATURES:
            return f"{head}: ..."
        text = _first_sentence(entry.description) if self.detail >= Detail.FIRST_SENTENCE else entry.description.strip()
        arguments = _arguments(entry) if self.detail < Detail.NO_ARGUMENTS else []
        lines = _comments(text, arguments) if self.compact else _docstring(text, arguments)
        if self.returns and self.detail < Detail.NO_RETURNS:
            said = self._shape_of(entry) or entry.tool.spec.returns_doc
            lines += [f"    # Returns: {said}"] if said else []
        if self.compact and lines:
            return "\n".join([f"{head}:", *lines])
        return "\n".join([f"{head}:", *lines, "    ..."])

    def _parameters(self, entry: ToolEntry) -> str:
        """Return the signature from its first parenthesis on."""
        text = entry.tool.signature.removeprefix(entry.tool.name)
        if not entry.tool.is_streaming or ") -> " not in text:
            return text
        given, _, returned = text.rpartition(") -> ")
        inner = _INNER.search(returned)
        kind = f"Iterator[{inner[1].partition(', ')[0]}]" if inner else "Iterator"
        return f"{given}) -> {kind if self.streams else 'list'}"

    def _shape_of(self, entry: ToolEntry) -> str:
        try:
            schema = entry.return_schema
            shape = describe_shape(schema, entry.name) if schema else ""
        except SchemaTooLarge:
            return _TOO_LARGE
        except SchemaError:
            return ""
        if "{" not in shape:
            return ""  # the signature shows it already
        if not entry.tool.is_streaming:
            return shape
        return f"{'Iterator' if self.streams else 'list'}[{shape}]"


def _first_sentence(text: str) -> str:
    found = _SENTENCE.match(text.strip())
    return " ".join((found[0] if found else text).split())


def _docstring(text: str, arguments: Sequence[str]) -> list[str]:
    if not text and not arguments:
        return []
    if not arguments and "\n" not in text:
        return [f'    """{text}"""']
    listed = [f"    {line}" for line in arguments]
    body = [*text.splitlines(), *(["", "Args:"] if text else ["Args:"]), *listed] if listed else text.splitlines()
    indented = [f"    {line}".rstrip() for line in body]
    return [f'    """{indented[0].strip()}', *indented[1:], '    """']


def _comments(text: str, arguments: Sequence[str]) -> list[str]:
    lines = [f'    """{" ".join(text.split())}"""'] if text else []
    return [*lines, *(f"    # {line}" for line in arguments)]


def _arguments(entry: ToolEntry) -> list[str]:
    try:
        schema = entry.parameters
    except SchemaError:
        return []
    lines: list[str] = []
    for name, part in schema.get("properties", {}).items():
        words = [
            text
            for text in (_inner_shape(part, schema, entry.name), " ".join(part.get("description", "").split()))
            if text
        ]
        if words:
            lines.append(f"{name}: {'. '.join(words)}")
    return lines


def _inner_shape(part: Mapping[str, Any], schema: Mapping[str, Any], tool: str) -> str:
    """Return the shape of an argument that has keys of its own: a type's name does not show them."""
    try:
        shape = describe_shape({**part, "$defs": schema.get("$defs", {})}, tool)
    except SchemaTooLarge:
        return _TOO_LARGE
    return shape if "{" in shape else ""
