"""Type stubs of a program's tools, and the check of a program against them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from toolcrib.code._check import Finding
from toolcrib.code._program_facts import ProgramFacts, called_name
from toolcrib.errors import CodeError, SchemaError
from toolcrib.sandbox import Source, SourceEdit, TypeChecker, awaited_calls, parse_program
from toolcrib.schema import STUB_IMPORTS, StubTypes
from toolcrib.tools import Tool

_AWAITED = "__awaited"
_UNPACKED = "__unpacked"
_HEADER = """
from typing import AsyncIterator, Generic, Iterator, TypeVar

_T = TypeVar("_T")

class Stream(Generic[_T]):
    def __iter__(self) -> Iterator[_T]: ...
    def __next__(self) -> _T: ...
    def __aiter__(self) -> AsyncIterator[_T]: ...
    async def __anext__(self) -> _T: ...
    def __getattr__(self, name: str) -> Any: ...

def __unpacked(values: Any) -> Any: ...
def parallel(*calls: Any, **options: Any) -> list[Any]: ...
def search_tools(query: str, limit: int = 5) -> list[dict[str, str]]: ...
def describe(name: Any) -> str: ...
"""
_LIST = re.compile(r"-> list(\[.*\]:)")


class TypeStubs:
    """The type stubs of a toolkit's tools.

    Args:
        tools: The tools, by the name that programs use.
        streams: Programs take the values of a streaming tool one by one.
    """

    def __init__(self, tools: Mapping[str, Tool[..., object]], streams: bool) -> None:
        types = StubTypes()
        self._names: set[str] = set()
        functions: list[str] = []
        for name, tool in tools.items():
            try:
                stub = tool.spec.stub(name, docs=False, types=types)
                awaited = tool.spec.stub(name + _AWAITED, docs=False, is_async=True, types=types)
            except SchemaError:
                functions.append(f"{name}: Any")
                continue
            if tool.is_streaming and streams:
                stub = _LIST.sub(r"-> Stream\1", stub)
            functions += [stub, awaited]
            self._names.add(name)
        self.text = "\n\n".join([STUB_IMPORTS, _HEADER, *types.render(docs=False), *functions])

    async def check(self, code: str, checker: TypeChecker) -> list[Finding]:
        """Return the findings of the type checker, by line; empty for a program that does not parse."""
        try:
            source = self._rewritten(parse_program(code, len(code)))
        except CodeError:
            return []
        problems = await checker.type_check(source.text, self.text)
        return [Finding(problem.line, "TypeError", problem.message.replace(_AWAITED, "")) for problem in problems]

    def _rewritten(self, source: Source) -> Source:
        """Return the program with each awaited call of a tool by a name that is async, and subtools by one name."""
        bound = ProgramFacts(source.tree).bound
        awaited = {id(call.func) for call in awaited_calls(source.tree)}
        edits: list[SourceEdit] = []
        for node in ast.walk(source.tree):
            if isinstance(node, ast.keyword) and node.arg is None:
                edits += _unchecked(source, node)
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                edits.append((*source.span(node), "pass"))  # it would have to be the first statement
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            name = called_name(ast.Call(node, [], []))
            root = node.id if isinstance(node, ast.Name) else (name or "").partition("__")[0]
            if name not in self._names or root in bound:
                continue
            wanted = name + (_AWAITED if id(node) in awaited else "")
            if wanted != (node.id if isinstance(node, ast.Name) else ""):
                edits.append((*source.span(node), wanted))
        return source.edited(_outermost(edits))


def _unchecked(source: Source, unpacked: ast.keyword) -> list[SourceEdit]:
    """Return the edits that have `**values` taken as it is: a checker tries each of the values for each parameter."""
    start, end = source.span(unpacked)[0], source.span(unpacked.value)[1]
    return [(start, start + len("**"), f"**{_UNPACKED}("), (end, end, ")")]


def _outermost(edits: list[SourceEdit]) -> list[SourceEdit]:
    """Return the edits without those inside another one: `a` in `a.b`."""
    outer: list[SourceEdit] = []
    for edit in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if not outer or edit[0] >= outer[-1][1]:
            outer.append(edit)
    return outer
