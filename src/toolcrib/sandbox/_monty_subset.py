"""The subset of Python that Monty takes: anything else is refused before a program runs, with the way to write it.

Small differences are mended without notice, so that the program that a model wrote is the program that runs.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolcrib.errors import CodeError
from toolcrib.sandbox._protocol import Program
from toolcrib.sandbox._source import Source, SourceEdit, parse_program
from toolcrib.sandbox._worker.awaiting import awaited_calls

MODULES = frozenset(
    {
        *(
            "asyncio",
            "base64",
            "binascii",
            "bisect",
            "collections",
            "copy",
            "csv",
            "dataclasses",
            "datetime",
            "decimal",
        ),
        *("functools", "hashlib", "itertools", "json", "math", "os", "os.path", "pathlib", "posixpath", "random", "re"),
        *("sys", "time", "tomllib", "typing", "unicodedata"),
    }
)
NOTES = (
    "Independent calls run at once: `import asyncio`, then `await asyncio.gather(f(a), f(b))`.",
    "This is a small Python: no `yield`, no `del`, no class that inherits, no `async with`.",
    f"These modules can be imported: {', '.join(sorted(MODULES))}.",
)
_ASYNCIO = frozenset({"gather", "run", "sleep", "TimeoutError"})
_SUSPICIOUS = re.compile(
    r"except\s*\*|\b(?:yield|class|del|async|await|asyncio|raise|import|map|filter|key|next|type|\w+Error)\b"
)
"""A word of everything below that is refused or mended; most short programs have none, and are not looked at."""
_CATCHING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_TYPE_ALIAS: type[ast.AST] | tuple[()] = getattr(ast, "TypeAlias", ())  # Python 3.12 and newer
_SHOWN = 5  # problems in one message
_OS_ERRORS = (
    *("IOError", "EnvironmentError", "ConnectionError", "ConnectionAbortedError", "ConnectionRefusedError"),
    *("ConnectionResetError", "BlockingIOError", "BrokenPipeError", "InterruptedError", "ProcessLookupError"),
)
_NEAR = {
    **dict.fromkeys(_OS_ERRORS, "OSError"),
    "UnicodeError": "ValueError",
    "FloatingPointError": "ArithmeticError",
    "IndentationError": "SyntaxError",
}
"""Builtin exceptions that Monty lacks, and the nearest above them: what a tool raises arrives as that, too."""


@dataclass(frozen=True, slots=True)
class MontySource:
    """The text of a program that Monty takes.

    Attributes:
        code: The text, line for line that of the program.
        awaited: Spans, in bytes of `code`, of the calls to answer with a future.
    """

    code: str
    awaited: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True, order=True)
class _Problem:
    line: int
    text: str
    kind: str = "SyntaxError"


def monty_source(program: Program) -> MontySource:
    """Return a program as Monty takes it.

    Raises:
        CodeError: It is not Python, or uses what Monty does not have; the message says how to write it instead.
    """
    source = parse_program(program.code, program.limits.source_size)
    dotted = "." in source.text and any("__" in name for name in program.tools)
    if not dotted and _SUSPICIOUS.search(source.text) is None:
        return MontySource(source.text, frozenset())
    reader = _Reader(source, frozenset(program.tools))
    problems = sorted(set(reader.problems()))
    if problems:
        first, *more = problems
        lines = [first.text, *(f"line {other.line}: {other.text}" for other in more[: _SHOWN - 1])]
        if any(problem.kind == "ImportError" for problem in problems):
            lines.append(f"A program can import {', '.join(sorted(MODULES))}. For anything else call a tool.")
        raise CodeError("\n".join(lines), first.line, first.kind)
    edits = reader.edits()
    if edits:
        source = source.edited(edits)
    if "await" not in source.text and "asyncio" not in source.text:
        return MontySource(source.text, frozenset())
    return MontySource(source.text, frozenset(source.span(call) for call in awaited_calls(source.tree)))


class _Reader:
    def __init__(self, source: Source, offered: frozenset[str]) -> None:
        self._source = source
        self._nodes = list(ast.walk(source.tree))
        methods = {part for node in self._nodes if isinstance(node, ast.ClassDef) for part in node.body}
        plain = [node for node in self._nodes if node not in methods]
        self._defined = _own_names(plain)
        self._tools = offered - self._defined
        self._subtools = {name.replace("__", "."): name for name in self._tools if "__" in name}
        self._functions = {n.name: n for n in plain if isinstance(n, ast.FunctionDef)}
        self._coroutines = {n.name for n in plain if isinstance(n, ast.AsyncFunctionDef)}

    # --- what is refused

    def problems(self) -> Iterator[_Problem]:
        guarded = _guarded_imports(self._nodes)
        for node in self._nodes:
            if isinstance(node, ast.expr | ast.stmt | ast.comprehension):
                line = node.target.lineno if isinstance(node, ast.comprehension) else node.lineno
                for text in self._misuse(node):
                    yield _Problem(line, text)
            if isinstance(node, ast.Import | ast.ImportFrom) and node not in guarded:
                for text in _imports(node):
                    yield _Problem(node.lineno, text, "ImportError")

    def _misuse(self, node: ast.expr | ast.stmt | ast.comprehension) -> Iterator[str]:
        match node:
            case ast.Call():
                yield from self._call(node)
            case ast.Attribute(value=ast.Name(id="asyncio"), attr=name) if name not in _ASYNCIO:
                yield _asyncio(name)
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in self._coroutines:
                yield f"`{name}(...)` alone does not run: write `await {name}(...)`"
            case ast.Yield() | ast.YieldFrom():
                yield "`yield` is not supported here: collect the values in a list and return it"
            case ast.ClassDef():
                yield from _class(node)
            case ast.Delete():
                yield "`del` is not supported here: for an item write `d.pop(key)`, for a name assign None"
            case ast.AsyncWith():
                yield "`async with` is not supported here: call the tools directly, several at once with asyncio.gather"
            case ast.AsyncFor() | ast.comprehension(is_async=1):
                yield "`async for` is not supported here: a streaming tool returns a list, use a plain `for`"
            case ast.TryStar():
                yield "`except*` is not supported here: write `except`"
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[_, _, *_])) if _is_exception(name):
                yield f"an exception takes one text here: write `raise {name}(f'...')`"
            case _ if isinstance(node, _TYPE_ALIAS):
                yield "`type` aliases are not supported here: leave the alias out"
            case _:
                pass

    def _call(self, call: ast.Call) -> Iterator[str]:
        match call:
            case ast.Call(func=ast.Name(id="map" | "filter" as taker), args=[function, *_]):
                tool = self._tool_in(function)
                rewrite = f"[{tool}(x) for x in items]" if taker == "map" else f"[x for x in items if {tool}(x)]"
                if tool:
                    yield f"`{taker}` cannot call the tool `{tool}`: write `{rewrite}`"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="gather"), keywords=[_, *_]):
                yield (
                    "`asyncio.gather` takes no keywords here: catch exceptions in an `async def` of your own around "
                    "the call, and gather those"
                )
            case _:
                pass
        for keyword in call.keywords:
            if keyword.arg == "key" and (tool := self._tool_in(keyword.value)):
                yield (
                    f"`key=` cannot call the tool `{tool}`: call it first, `pairs = [({tool}(x), x) for x in items]`, "
                    "and use `key=lambda pair: pair[0]` on those"
                )

    def _tool_in(self, function: ast.expr) -> str:
        """Return the tool that a function given as a value is or calls; empty when it is or calls no tool."""
        name = self._tool(function)
        if name:
            return name
        body: ast.AST | None = function.body if isinstance(function, ast.Lambda) else None
        if isinstance(function, ast.Name):
            body = self._functions.get(function.id)
        if body is None:
            return ""
        called = (self._tool(node.func) for node in ast.walk(body) if isinstance(node, ast.Call))
        return next(filter(None, called), "")

    def _tool(self, expression: ast.expr) -> str:
        name = _dotted(expression)
        return name if name in self._tools else self._subtools.get(name, "")

    # --- what is mended

    def edits(self) -> list[SourceEdit]:
        edits: list[SourceEdit] = []
        read: set[ast.AST] = set()
        for node in self._nodes:
            match node:
                case ast.ImportFrom(module="__future__"):
                    start, end = self._source.span(node)
                    edits.append((start, end, "pass" + "\n" * ((node.end_lineno or node.lineno) - node.lineno)))
                case ast.Attribute(value=ast.Name(id="asyncio"), attr="TimeoutError"):
                    edits.append((*self._source.span(node), "TimeoutError"))
                case ast.Attribute() if self._subtools and node not in read:
                    edits += self._subtool(node, read)
                case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp() as values, *_]):
                    edits += self._first_of(node, values)
                case ast.Name(id=name, ctx=ast.Load()) if name in _NEAR and name not in self._defined:
                    edits.append((*self._source.span(node), _NEAR[name]))
                case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[text], keywords=[])) if _is_exception(name):
                    edits += self._as_text(text)
                case _:
                    pass
        return edits

    def _subtool(self, node: ast.Attribute, read: set[ast.AST]) -> Iterator[SourceEdit]:
        """Yield `parent.child` as `parent__child`."""
        dotted = _dotted(node)
        name = self._subtools.get(dotted)
        if name is None or dotted.partition(".")[0] in self._defined or node.lineno != node.end_lineno:
            return
        read.update(ast.walk(node))
        yield (*self._source.span(node), name)

    def _first_of(self, call: ast.Call, values: ast.GeneratorExp) -> Iterator[SourceEdit]:
        """Yield `next(x for ...)` as `next(iter([x for ...]))`: generator expressions are lists there."""
        start, end = self._source.span(values)
        shared = start == self._source.span(call.func)[1]  # the call's parentheses are the expression's too
        yield (start, start + 1, "(iter([" if shared else "iter([")
        yield (end - 1, end, "]))" if shared else "])")

    def _as_text(self, text: ast.expr) -> Iterator[SourceEdit]:
        """Yield `raise ValueError(x)` as `raise ValueError(str(x))`: exceptions take only text there."""
        plain = isinstance(text, ast.JoinedStr) or (isinstance(text, ast.Constant) and isinstance(text.value, str))
        if plain or isinstance(text, ast.Starred | ast.GeneratorExp) or "str" in self._defined:
            return
        start, end = self._source.span(text)
        yield (start, start, "str(")
        yield (end, end, ")")


def _own_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return every name that the program itself binds, wherever it does."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case _:
                pass
    return names


def _dotted(expression: ast.expr) -> str:
    """Return `a.b.c` for that expression, an empty string for any other."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    return ".".join([expression.id, *reversed(parts)]) if isinstance(expression, ast.Name) else ""


def _guarded_imports(nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Return the nodes inside each `try` that catches a failed import."""
    guarded: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Try) and any(_catches_import(handler) for handler in node.handlers):
            for statement in node.body:
                guarded.update(ast.walk(statement))
    return guarded


def _catches_import(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CATCHING) for kind in kinds)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    if isinstance(node, ast.ImportFrom):
        if node.module == "__future__":
            return
        if node.level:
            names = ["." * node.level + (node.module or "")]
        elif node.names[0].name == "*":
            yield f"`from {node.module} import *` is not supported here: name what you import"
    for name in names:
        if name not in MODULES:
            yield f"`{name}` cannot be imported"


def _asyncio(name: str) -> str:
    if name in ("wait_for", "timeout", "timeout_at"):
        return f"`asyncio.{name}` is not there: tools have deadlines of their own, so await the call directly"
    if name in ("Semaphore", "BoundedSemaphore", "Lock"):
        return f"`asyncio.{name}` is not there, nor needed: the host limits how many calls run at a time"
    if name in ("create_task", "ensure_future", "TaskGroup", "as_completed", "wait", "to_thread"):
        return f"`asyncio.{name}` is not there: to run calls at once write `await asyncio.gather(tool(a), tool(b))`"
    return f"`asyncio.{name}` is not there: asyncio has gather, run and sleep here"


def _class(node: ast.ClassDef) -> Iterator[str]:
    if any(isinstance(base, ast.Name) and _is_exception(base.id) for base in node.bases):
        yield f"`class {node.name}` cannot inherit: raise a builtin exception such as ValueError instead"
    elif node.bases or node.keywords:
        yield f"`class {node.name}` cannot inherit: write a plain class, a dataclass or a dict"
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.decorator_list:
            yield f"the method `{node.name}.{part.name}` cannot be decorated: write a plain method or a function"


def _is_exception(name: str) -> bool:
    kind: object = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)
