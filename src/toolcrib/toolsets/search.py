"""Tool search for toolsets that are too big to be offered whole: the extra `search`.

`searchable` keeps some tools in the offer and hides the others behind a `search_tools` tool. What it finds may be
called from then on, in that run alone. The only module that imports bm25s.
"""

from __future__ import annotations

import re
import threading
from asyncio import to_thread
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from pydantic import Field

from toolcrib._extras import Extra
from toolcrib.errors import explain_options
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool
from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import is_available
from toolcrib.toolsets._names import names_of
from toolcrib.toolsets._select import Selectable
from toolcrib.toolsets._toolset import Toolset, ToolsetLike
from toolcrib.toolsets._words import words_of

with Extra("tool search", "search", ("bm25s", "numpy")):
    import bm25s  # pyright: ignore[reportMissingTypeStubs] -- it has none

__all__ = ["FoundTool", "SearchTools", "searchable"]

_READ = 2_000  # characters of a query, of which a model may write a megabyte
_SUMMARY = 300  # characters of a description that say what a tool does
_WEIGHT = 0.7  # of names and summaries beside all texts; with 1.0, long questions find less
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


@lru_cache(10_000)
def _stem(word: str) -> str:
    """Return a word without -ing, -ed and a last e, and with y for i: namespaced -> namespac, policie -> policy."""
    ending = next((suffix for suffix in ("ing", "ed") if word.endswith(suffix) and len(word) - len(suffix) > 3), "")
    stem = word.removesuffix(ending)
    if len(stem) < 5:
        return stem
    stem = stem.removesuffix("e")
    return f"{stem[:-1]}y" if stem.endswith("i") else stem


def _terms(text: str) -> list[str]:
    return list(map(_stem, words_of(text)))


_ASKING = frozenset(  # what a question has, and no tool is about
    _terms(
        "about all am any but can could did do does did had has have he her his how i if into like me my need no not "
        "our please she should so some such their them then there these they this tool use was want we were what when "
        "where which who will would you your"
    )
)
_ACTIONS = {  # verbs that stand for one another in names, descriptions and queries; no word has a `=`
    verb: f"={action}"
    for action, verbs in {
        "create": "create add new make insert post register",
        "read": "read get retrieve show view list find fetch see",
        "update": "update change edit modify patch put replace",
        "delete": "delete remove destroy drop",
    }.items()
    for verb in _terms(verbs)
}


class FoundTool(TypedDict):
    """A tool that a search found: what it is called by, and what it is for."""

    name: str
    description: str


@explain_options()
def searchable(tools: ToolsetLike, *, keep: Iterable[Selectable] = ()) -> Toolset:
    """Return the toolset with only the kept tools on offer, and a `search_tools` tool that reveals the others.

    A hidden tool cannot be called before it was found in the same run, and keeps all its gates. Tools that are off are
    neither offered nor found. Put a prefix on before or after; other renaming goes before, because results show the
    names that tools have here.

    ```python
    from toolcrib import Pipeline, Run, ToolCall, tool
    from toolcrib.toolsets.search import searchable

    @tool()
    async def send_email(recipient: str, body: str) -> str:
        '''Send a message to a person.'''
        return f"sent to {recipient}"

    pipeline, run = Pipeline(searchable([send_email])), Run()
    print([d.name for d in pipeline.toolset.definitions()])
    await pipeline.run(ToolCall("search_tools", {"query": "write an email"}), run)
    print([d.name for d in pipeline.toolset.definitions(revealed=run.revealed)])
    ```

    ```output
    ['search_tools']
    ['search_tools', 'send_email']
    ```

    Args:
        tools: The toolset, which is not changed.
        keep: Names or selectors of tools that are always offered; UnknownTool for one that is not a member.

    Raises:
        ValueError: The toolset has sources that were not asked for their tools yet.
    """
    toolset = Toolset.of(tools)
    if not toolset.is_open:
        raise ValueError("its tools are not known yet: `async with toolset.open(ctx) as bound`, and search `bound`")
    shown = {toolset[name].name for name in names_of(keep)}
    rest = [entry for entry in toolset if entry.name not in shown]
    search = SearchTools(entry for entry in rest if not entry.off)
    names = [entry.name for entry in rest]
    return Toolset([toolset.subset(shown), search, toolset.subset(names).hiding(names)], toolset_id=toolset.toolset_id)


class SearchTools(BaseTool):
    """Find tools for a task. Tools that are found can be called from the next step on."""

    effect = "none"
    source = None

    def __init__(self, entries: Iterable[ToolEntry]) -> None:
        self._entries = tuple(entries)
        self._index: tuple[Any, Any] | None = None  # of bm25s, which has no types
        self._building = threading.Lock()

    async def call(
        self,
        ctx: RunContext[Any],
        query: Annotated[str, Field(description="What the tool should do, in a few words.")],
        limit: Annotated[int, Field(description="The most tools to find.", ge=1, le=20)] = 5,
    ) -> list[FoundTool]:
        if self._index is None:
            await to_thread(self._build)  # a big set takes a second, once
        prefix = ctx.tool_name.removesuffix(self.name)  # of a view that was put around all of it
        found: list[FoundTool] = []
        for entry in self.ranked(query):
            if len(found) == limit:
                break
            if await is_available(entry, ctx):
                name = prefix + entry.name
                ctx.revealed[name] = None
                found.append(FoundTool(name=name, description=entry.description))
        return found

    def ranked(self, query: str) -> Iterator[ToolEntry]:
        """Yield the tools that have a word of the query, the best first, equals in their own order."""
        terms = _terms(query[:_READ])
        terms = [term for term in terms if term not in _ASKING] or terms
        if not terms:
            return
        texts, summaries = self._build()
        scores = texts.get_scores(terms) + _WEIGHT * summaries.get_scores(_with_phrases(terms))
        for number in (-scores).argsort(kind="stable"):
            if scores[number] <= 0:
                return
            yield self._entries[number]

    def _build(self) -> tuple[Any, Any]:
        """Return the index of all texts of the tools, and that of their names and summaries, which long texts hide."""
        if self._index is not None:
            return self._index
        with self._building:
            if self._index is None:
                texts = _indexed(map(_texts_of, self._entries), b=0.75)
                self._index = texts, _indexed(map(_summary_of, self._entries), b=1.0)  # the shorter, the better
            return self._index


def _indexed(texts: Iterable[list[str]], b: float) -> Any:
    """Return an index of the terms of each tool; `b`, from 0 to 1, is how much the length of a text counts."""
    index: Any = bm25s.BM25(b=b)
    index.index([terms or [""] for terms in texts] or [[""]], show_progress=False)
    return index


def _texts_of(entry: ToolEntry) -> list[str]:
    """Return all terms that a tool can be found by; its name counts twice."""
    return _terms("\n".join([entry.name, entry.name, entry.description_override or "", *entry.tool.spec.texts()]))


def _summary_of(entry: ToolEntry) -> list[str]:
    """Return the terms of a tool's name and of the first sentence of its description, with their phrases."""
    sentence = _SENTENCE_END.split(entry.description[:_SUMMARY], maxsplit=1)[0]
    return [*_with_phrases(_terms(entry.name)), *_with_phrases(_terms(sentence))]


def _with_phrases(terms: list[str]) -> list[str]:
    """Return the terms, neighbours joined to one (config map -> configmap) but verbs, and the actions of verbs."""
    joined = [first + second for first, second in pairwise(terms) if first not in _ACTIONS and second not in _ACTIONS]
    return [*terms, *joined, *(_ACTIONS[term] for term in terms if term in _ACTIONS)]
