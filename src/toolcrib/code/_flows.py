"""Flows of a program: what may come into each argument of its calls, found before it runs.

Where a program does what cannot be followed, such as `exec` or a class, nothing is known of it; where one value may be
anything, nothing is known of the argument that it flows into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from toolcrib.code._data_flow import ALL_ARGUMENTS, FlowReader
from toolcrib.code._program_facts import ProgramFacts
from toolcrib.code._program_tools import ProgramTool
from toolcrib.code._value_graph import Arrival, CallSite, CannotFollow
from toolcrib.errors import CodeError, SchemaError
from toolcrib.provenance import Flow, fields_of, flat
from toolcrib.sandbox import parse_program

__all__ = ["ProgramFlows", "flows_of"]

_MOST_CHARS: Final = 20_000
_OPEN: Final = frozenset({"open", "setattr", "delattr", "getattr", "input", "type", "super"})
_OPEN_MODULES: Final = frozenset(
    {"contextvars", "ctypes", "fileinput", "io", "linecache", "os", "pathlib", "pickle", "queue", "shelve", "shutil"}
    | {"sqlite3", "sys", "tempfile", "threading", "types", "weakref"}
)
_CHANGES_ARGUMENTS: Final = frozenset({"bisect", "copy", "heapq", "operator"})


Site: TypeAlias = tuple[int, int, Mapping[str, Flow | None]]
"""A call: its first and last line, and the flows of its arguments, None for those of which nothing is known."""


class ProgramFlows:
    """What may come into the arguments of a program's calls.

    Args:
        sites: The calls of each tool, by its own name.
    """

    def __init__(self, sites: Mapping[str, Sequence[Site]] | None = None) -> None:
        self._sites = sites or {}
        self._found: dict[tuple[str, int], Mapping[str, Flow]] = {}

    def at(self, tool: str, line: int) -> Mapping[str, Flow]:
        """Return what may come into the arguments of a call, as far as that is known.

        Args:
            tool: The tool.
            line: The line that makes the call, as the sandbox says; it says which calls of the tool it may be.
        """
        sites = self._sites.get(tool, ())
        line = line if any(0 < first <= line <= last for first, last, _ in sites) else 0
        if (tool, line) not in self._found:
            self._found[tool, line] = _merged([each for each in sites if 0 in (line, each[0]) or _has(each, line)])
        return self._found[tool, line]


def _has(site: Site, line: int) -> bool:
    return site[0] <= line <= site[1]


def _merged(sites: Sequence[Site]) -> dict[str, Flow]:
    came: dict[str, list[Flow | None]] = {}
    for _, _, flows in sites:
        for argument, flow in flows.items():
            came.setdefault(argument, []).append(flow)
    known = {argument: [flow for flow in flows if flow is not None] for argument, flows in came.items()}
    return {argument: Flow.any_of(flows) for argument, flows in known.items() if len(flows) == len(came[argument])}


def flows_of(code: str, tools: Mapping[str, ProgramTool], *, is_early: bool) -> ProgramFlows:
    """Return what may come into the arguments of a program's calls.

    Args:
        code: The program.
        tools: The tools, by the names that it uses.
        is_early: Whether it was written before any text of others was read.
    """
    made: dict[str, list[Site]] = {}
    for site in _sites(code, tools):
        tool = tools[site.tool]
        try:
            order, rest = tool.spec.by_position
        except SchemaError:  # the pipeline reports it when the tool is called
            continue
        flows: dict[str, Flow | None] = {}
        for argument in {*order, *(key for key in site.arrivals if isinstance(key, str))} - {ALL_ARGUMENTS, rest}:
            place = order.index(argument) if argument in order else ALL_ARGUMENTS
            came = [site.arrivals[key] for key in {argument, place, ALL_ARGUMENTS} if key in site.arrivals]
            if came:
                flows[argument] = _flow(came, tools, is_early=is_early)
        made.setdefault(tool.name, []).append((site.first, site.last, flows))
    return ProgramFlows(made)


def _flow(came: Sequence[Arrival], tools: Mapping[str, ProgramTool], *, is_early: bool) -> Flow | None:
    if not all(each.is_known for each in came):
        return None
    results = {(tools[tool].name, fields_of(".".join(fields))) for each in came for tool, fields in each.results}
    literals = {flat(one) if isinstance(one, str) else round(float(one), 4) for each in came for one in each.literals}
    return Flow(frozenset(results), frozenset(literals), is_early)


def _sites(code: str, tools: Mapping[str, ProgramTool]) -> Sequence[CallSite]:
    """Return the calls of tools, with what may come into their arguments; nothing where that cannot be followed."""
    try:
        tree = parse_program(code, _MOST_CHARS).tree
        facts = ProgramFacts(tree)
        names = {use.node.id for use in facts.names}
        modules = {each.module.partition(".")[0] for each in facts.imports}
        if facts.is_open or names & _OPEN or modules & _OPEN_MODULES:
            return ()
        changes = bool(modules & _CHANGES_ARGUMENTS)
        reader = FlowReader(facts, frozenset(tools) - facts.bound, changes=changes)
        reader.read(tree)
        return reader.graph.solved()
    except (CodeError, RecursionError, CannotFollow):
        return ()
