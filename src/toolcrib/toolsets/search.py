"""Tool search for toolsets that are too big to be offered whole: the extra `search`.

`searchable` keeps some tools in the offer and hides the others behind a `search_tools` tool. What it finds may be
called from then on, in that run alone. The only module that imports bm25s.
"""

from __future__ import annotations

import threading
from asyncio import to_thread
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypedDict

from pydantic import Field

from toolcrib.errors import MissingExtraError
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool
from toolcrib.toolsets._entry import ToolEntry
from toolcrib.toolsets._members import is_available
from toolcrib.toolsets._select import Selectable, names_of
from toolcrib.toolsets._toolset import Toolset, ToolsetLike
from toolcrib.toolsets._words import words_of

try:
    import bm25s  # pyright: ignore[reportMissingTypeStubs] -- it has none
except ModuleNotFoundError as error:
    raise MissingExtraError("tool search", "search") from error

__all__ = ["FoundTool", "SearchTools", "searchable"]

_READ = 2_000  # characters of a query, of which a model may write a megabyte
_ASKING = frozenset(  # what a question has, and no tool is about
    words_of(
        "about all am any but can could did do does had has have he her his how i if into like me my need no not our "
        "please she should so some such their them then there these they this tool use was want we were what when "
        "where which who will would you your"
    )
)


class FoundTool(TypedDict):
    """A tool that a search found: what it is called by, and what it is for."""

    name: str
    description: str


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
    kept = {toolset[name].name for name in names_of(keep)}
    rest = [entry for entry in toolset if entry.name not in kept]
    search = SearchTools(entry for entry in rest if not entry.off)
    names = [entry.name for entry in rest]
    return Toolset([toolset.subset(kept), search, toolset.subset(names).hiding(names)], toolset_id=toolset.toolset_id)


class SearchTools(BaseTool):
    """Find tools for a task. Tools that are found can be called from the next step on."""

    effect = "none"
    source = None

    def __init__(self, entries: Iterable[ToolEntry]) -> None:
        self._entries = tuple(entries)
        self._index: Any = None  # of bm25s, which has no types
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
        words = list(words_of(query[:_READ]))
        words = [word for word in words if word not in _ASKING] or words
        if not words:
            return
        scores = self._build().get_scores(words)
        for number in (-scores).argsort(kind="stable"):
            if scores[number] <= 0:
                return
            yield self._entries[number]

    def _build(self) -> Any:
        if self._index is not None:
            return self._index
        with self._building:
            if self._index is None:
                index: Any = bm25s.BM25()
                corpus = [list(_words_about(entry)) or [""] for entry in self._entries]
                index.index(corpus or [[""]], show_progress=False)
                self._index = index
            return self._index


def _words_about(entry: ToolEntry) -> Iterator[str]:
    """Yield what a tool can be found by; its name counts twice."""
    return words_of("\n".join([entry.name, entry.name, entry.description_override or "", *entry.tool.spec.texts()]))
