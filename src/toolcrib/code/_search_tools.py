"""Lookup of tools from a program: the functions `search_tools` and `describe`, for tools that the prompt left out.

Every program has them. They are not tools: the host answers them, the sandbox counts them, and no record has them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from toolcrib.calls import new_call_id
from toolcrib.code._listing import Detail, Listing
from toolcrib.errors import MissingExtraError, closest, exception_of
from toolcrib.pipeline import Run, visible_names
from toolcrib.sandbox import Emit, Host, OutputStream, Raised, Reply, Value
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, Toolset, is_available, words_of

_MOST_FOUND = 20  # tools of one search
_MOST_CHARS = 2_000  # of a query or a name
_FUNCTION = re.compile(r"<function (\w+)")  # what a function becomes on its way out of a program
_SEARCH, _DESCRIBE = "search_tools", "describe"


def lookup_names(used: Collection[str]) -> tuple[str, str]:
    """Return the names of the two functions: with an underscore at the end where a tool has the name."""
    search, describe = (f"{name}_" if name in used else name for name in (_SEARCH, _DESCRIBE))
    return search, describe


class Lookup:
    """Finds and describes the tools of one toolkit for its programs.

    Args:
        toolset: The tools.
        names: The tools' own names, by the names that programs use.
        listing: How tools are shown; its own tools do not count.

    Attributes:
        names: The names by which programs call the two functions.
        signatures: How the functions are called.
    """

    def __init__(self, toolset: Toolset, names: Mapping[str, str], listing: Listing) -> None:
        self._toolset, self._tools, self._listing = toolset, names, listing
        self._search, self._describe = self.names = listing.lookup_names
        self.signatures = {
            self._search: f"{self._search}(query: str, limit: int = 5) -> list[dict[str, str]]",
            self._describe: f"{self._describe}(name: str) -> str",
        }
        self._index: tuple[frozenset[str], Any] | None = None

    async def answer(self, name: str, args: list[Any], kwargs: Mapping[str, Any], run: Run) -> Reply:
        """Answer a program's call of one of the two."""
        order = ("query", "limit") if name == self._search else ("name",)
        arguments = {**dict(zip(order, args, strict=False)), **kwargs}
        text, limit = arguments.pop(order[0], None), arguments.pop("limit", 5)
        if len(args) > len(order) or arguments or not isinstance(text, str):
            return Raised("TypeError", f"write it as `{self.signatures[name]}`")
        if len(text) > _MOST_CHARS:
            return Raised("ValueError", f"the {order[0]} has {len(text)} characters, and may have {_MOST_CHARS}")
        if not isinstance(limit, int) or not 1 <= limit <= _MOST_FOUND:
            return Raised("ValueError", f"the limit is a number from 1 to {_MOST_FOUND}")
        try:
            if name == self._describe:
                return await self._described(text, run)
            return Value([self._line(found) for found in await self._found(text, limit, run)])
        except BaseException as error:  # a condition of availability is the user's code; a gate that fails is shut
            name = type(exception_of(error)).__name__
            return Raised("RuntimeError", f"it cannot be said which functions are available ({name})")

    # --- describe

    async def _described(self, text: str, run: Run) -> Reply:
        function = _FUNCTION.match(text)
        name = function[1] if function else text.strip().removesuffix("()").replace(".", "__")
        offered = self._offered(run)
        name = next((mine for mine, tool in offered.items() if text == tool), name)
        if name not in offered or not await is_available(self._entry(name), self._context(name, run)):
            known = frozenset(visible_names(self._toolset, run))
            shown = [mine for mine, tool in offered.items() if tool in known]
            return Raised("NameError", f"there is no function `{text:.100}`. {closest(name, shown)}")
        return Value(self._listing.function(name, self._entry(name), Detail.ALL))

    # --- search

    async def _found(self, query: str, limit: int, run: Run) -> list[str]:
        offered = self._offered(run)
        mine = {tool: name for name, tool in offered.items()}
        entries = [self._toolset[tool] for tool in mine]
        ctx = self._context(_SEARCH, run)
        try:
            names = frozenset(mine)
            if self._index is None or self._index[0] != names:
                search = importlib.import_module("toolcrib.toolsets.search")  # with the extra of that name
                self._index = (names, search.SearchTools(entries))
            searched = self._index[1]
        except MissingExtraError:
            return [mine[entry.name] for entry in await matching(entries, query, limit, ctx)]
        return [mine[found["name"]] for found in await searched.call(ctx, query, limit)]

    def _line(self, name: str) -> dict[str, str]:
        entry = self._entry(name)
        call = name + self._listing.signature(entry)
        return {"name": name, "call": call, "description": entry.description}

    # --- of both

    def _offered(self, run: Run) -> dict[str, str]:
        allowed = self._toolset.offered() if run.available is None else run.available
        return {name: tool for name, tool in self._tools.items() if tool in allowed or tool in run.revealed}

    def _entry(self, name: str) -> ToolEntry:
        return self._toolset[self._tools[name]]

    @staticmethod
    def _context(name: str, run: Run) -> RunContext[Any]:
        """Return the context for conditions of availability; a search reveals nothing else."""
        return RunContext(run.deps, new_call_id(), name, run.id, provided=run.provide)


class LookupHost:
    """The host of one program, which answers what it looks up itself and leaves the rest to another host."""

    def __init__(self, host: Host, lookup: Lookup, run: Run) -> None:
        self._host, self._lookup, self._run = host, lookup, run

    async def call(self, name: str, args: list[Any], kwargs: dict[str, Any], emit: Emit | None = None) -> Reply:
        """Answer a call of the program; see `Host`."""
        if name in self._lookup.names:
            return await self._lookup.answer(name, args, kwargs, self._run)
        return await self._host.call(name, args, kwargs, emit)

    def output(self, text: str, stream: OutputStream) -> None:
        """Collect what was printed."""
        self._host.output(text, stream)


async def matching(entries: Iterable[ToolEntry], query: str, limit: int, ctx: RunContext[Any]) -> list[ToolEntry]:
    """Return the tools with most words of the query in name or description, the name counting twice."""
    words = set(words_of(query))
    scores = [
        (len(words & set(words_of(entry.name))) * 2 + len(words & set(words_of(entry.description))), entry)
        for entry in entries
    ]
    ranked = sorted((pair for pair in scores if pair[0]), key=lambda pair: -pair[0])
    found: list[ToolEntry] = []
    for _, entry in ranked:
        if len(found) == limit:
            break
        if await is_available(entry, ctx):
            found.append(entry)
    return found
