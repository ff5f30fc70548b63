"""Pages of a list: the arguments that the next page has, where the document says how pages follow on each other.

That is so with a `Link` header that the document describes, and with a cursor: a field of the answer whose value an
argument of the query takes. No address that a server gives is followed: of a link only those parameters are taken that
the operation has itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from toolcrib.jsonschema import wrapped
from toolcrib.openapi._document import Document
from toolcrib.openapi._operations import Endpoint
from toolcrib.openapi._sending import Answer
from toolcrib.openapi._shapes import list_of, mapping_of
from toolcrib.openapi._styles import Parameter

Pages: TypeAlias = Literal["offer", "off"] | int
"""`offer` the arguments of the next page with each, or `off`; a number has up to that many put together in one call."""

_LINK = re.compile(r'<([^<>]{1,4000})>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]{0,200}"|[^\s",;]{1,200}))*)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))', re.IGNORECASE)
_CURSORS: Mapping[str, tuple[str, ...]] = {  # parameter -> fields, both as letters alone
    "cursor": ("nextcursor", "next", "endcursor", "cursor"),
    "pagetoken": ("nextpagetoken", "nexttoken"),
    "nextpagetoken": ("nextpagetoken",),
    "nexttoken": ("nexttoken",),
    "continue": ("continue",),
    "continuationtoken": ("continuationtoken", "nextcontinuationtoken"),
    "after": ("endcursor", "nextcursor", "after"),
    "startcursor": ("nextcursor",),
    "marker": ("nextmarker",),
    "offsettoken": ("nextoffsettoken",),
}
_HOLDERS = frozenset({"metadata", "meta", "pagination", "paging", "pageinfo", "page", "cursors", "responsemetadata"})


@dataclass(frozen=True, slots=True)
class Paging:
    """The order of an operation's pages: how each leads to the next.

    Attributes:
        argument: The argument that takes the cursor; None for links.
        field: Where the cursor is in an answer.
    """

    parameters: Mapping[str, Parameter]
    argument: str | None = None
    field: tuple[str, ...] = ()

    def following(self, arguments: Mapping[str, Any], answer: Answer, value: Any) -> dict[str, Any] | None:
        """Return the arguments of the next page; None after the last one, or where they cannot be said."""
        changed = self._linked(answer) if self.argument is None else self._cursor(value)
        if not changed or all(arguments.get(name) == part for name, part in changed.items()):
            return None
        return {**arguments, **changed}

    def _cursor(self, value: Any) -> dict[str, Any]:
        for key in self.field:
            value = mapping_of(value).get(key)
        is_cursor = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
        return {str(self.argument): value} if is_cursor else {}

    def _linked(self, answer: Answer) -> dict[str, Any]:
        target = next(_targets(answer.headers.get("link", "")), None)
        if target is None:
            return {}
        query = parse_qs(urlsplit(target).query, keep_blank_values=True)
        arguments: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            texts = query.get(parameter.name, []) if parameter.place == "query" else []
            read = _READERS.get(str(parameter.schema.get("type", "string")))
            if len(texts) == 1 and read is not None:
                try:
                    arguments[name] = read(texts[0])
                except (KeyError, ValueError):
                    return {}
        return arguments


_READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
}


def paging_of(document: Document, endpoint: Endpoint, method: str) -> Paging | None:
    """Return how the pages of an operation follow on each other; None where the document does not say so."""
    if method != "GET":
        return None
    in_query = {name: parameter for name, parameter in endpoint.parameters.items() if parameter.place == "query"}
    if endpoint.links and in_query:
        return Paging(endpoint.parameters)
    if endpoint.answer is None:
        return None
    fields = dict(_fields(document, *endpoint.answer))
    for name, parameter in in_query.items():
        for wanted in _CURSORS.get(_letters(parameter.name), ()):
            if wanted in fields:
                return Paging(endpoint.parameters, name, fields[wanted])
    return None


def _fields(document: Document, schema: Any, base: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the fields of an answer, and of what holds the facts about its pages, by their letters."""
    for name, part, inner in _properties(document, schema, base):
        if _letters(name) in _HOLDERS:
            for key, _, _ in _properties(document, part, inner):
                yield _letters(key), (name, key)
    for name, _, _ in _properties(document, schema, base):
        if _letters(name) not in _HOLDERS:
            yield _letters(name), (name,)


def _properties(document: Document, schema: Any, base: str) -> Iterator[tuple[str, Any, str]]:
    """Yield the properties of a schema and of all that it is composed of, each part once."""
    waiting, visited = [(schema, base)], set[int]()
    while waiting:
        place = document.place(*waiting.pop())
        named = mapping_of(place.value)
        if id(named) in visited:
            continue
        visited.add(id(named))
        for name, part in mapping_of(named.get("properties")).items():
            yield name, part, place.base
        waiting += [(part, place.base) for part in reversed(list_of(named.get("allOf")))]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _targets(header: str) -> Iterator[str]:
    """Yield the addresses of a `Link` header that lead to the next page."""
    for target, facts in _LINK.findall(header[:20_000]):
        for quoted, plain in _REL.findall(facts):
            if "next" in (quoted or plain).lower().split():
                yield target


def page_schema(answer: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of a page, with the one of its answer."""
    text = "Arguments of this tool for the next page; null on the last one."
    following = {"type": ["object", "null"], "description": text}
    page = wrapped(answer or {}, "page")
    return {**page, "properties": {**page["properties"], "next": following}, "required": ["page", "next"]}
