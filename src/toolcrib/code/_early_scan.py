"""The beginning of a program that still comes: the calls that it makes first, whichever text follows."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from toolcrib.code._program_facts import called_name
from toolcrib.errors import CodeError
from toolcrib.sandbox import parse_program

_MOST_STATEMENT: Final = 8_000  # characters of one statement, which is parsed again with each of its lines
_DEEPEST: Final = 50  # levels of an argument, and bits of a number, which every sandbox passes on unchanged
_MOST_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class LiteralCall:
    """A call of a tool whose arguments are written out, as JSON values."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]


class _Stop(Exception):
    """From here on it cannot be said that a call is made."""


@dataclass(slots=True)
class EarlyScan:
    """Reads a program while it comes, up to the first thing that may branch, raise, or define a name of a tool.

    Read are, at the top level: assignments to names, imports of modules of the sandbox, displays of lists and dicts,
    `print`, `asyncio.gather`, and calls of these tools. A call of anything else ends the reading, so that nothing is
    read before a change that the program makes first. A call, and the import of a name, may fail; then those after
    it are not made.

    Attributes:
        tools: The names of the tools whose calls are looked for.
        others: Further names that are functions, which a program must not define either.
        modules: The full names of modules that a program can import; None when that is not known.
        consumed: The part of the program that was read.
    """

    tools: Collection[str]
    others: Collection[str] = ()
    modules: Collection[str] | None = None
    consumed: str = ""
    _tried: int = 0
    _is_over: bool = False
    _bound: set[str] = field(default_factory=set[str])

    def read(self, text: str) -> list[LiteralCall]:
        """Return the calls that are new in a program, of which more may come.

        Args:
            text: The received part of the program, with every line ended by a line feed; it goes on from `consumed`.
        """
        found: list[LiteralCall] = []
        while not self._is_over and (end := text.find("\n", self._tried) + 1):
            self._tried = end
            statement = text[len(self.consumed) : end]
            try:
                body = parse_program(statement, _MOST_STATEMENT).tree.body
            except CodeError:  # it may go on in the next line
                self._is_over = len(statement) > _MOST_STATEMENT
                continue
            self.consumed = text[:end]
            found += self._calls(body)
        return found

    def _calls(self, body: Iterable[ast.stmt]) -> list[LiteralCall]:
        found: list[LiteralCall] = []
        try:
            for statement in body:
                found.extend(self._of_statement(statement))  # those before it stops are in the list
        except _Stop:
            self._is_over = True
        return found

    def _of_statement(self, statement: ast.stmt) -> Iterator[LiteralCall]:
        match statement:
            case ast.Expr(value=value):
                yield from self._of(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield from self._of(value)
                self._bind(name)
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._import(alias.name)
                    self._bind(alias.asname or alias.name.partition(".")[0], module=alias.name)
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                self._import(module)
                for alias in aliases:
                    self._bind(alias.asname or alias.name)
            case _:
                raise _Stop

    def _bind(self, name: str, *, module: str = "") -> None:
        functions = {*self.tools, *self.others, "print"}
        is_other = name == "asyncio" and module != name
        if name == "*" or is_other or any(name == tool or tool.startswith(f"{name}__") for tool in functions):
            raise _Stop
        self._bound.add(name)

    def _import(self, module: str) -> None:
        if self.modules is None or module not in self.modules:
            raise _Stop

    def _of(self, node: ast.expr) -> Iterator[LiteralCall]:
        """Yield the calls of an expression in the order in which they are made."""
        match node:
            case ast.Constant():
                return
            case ast.Name(id=name) if name in self._bound:
                return
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                yield from self._of_all(parts)
            case ast.Dict(keys=keys, values=parts) if all(isinstance(key, ast.Constant) for key in keys):
                yield from self._of_all(parts)
            case ast.Await(value=ast.Call() as call):
                yield from self._of_call(call, awaited=True)
            case ast.Call():
                yield from self._of_call(node)
            case _:
                raise _Stop

    def _of_all(self, parts: Iterable[ast.expr]) -> Iterator[LiteralCall]:
        for part in parts:
            yield from self._of(part)

    def _of_call(self, call: ast.Call, *, awaited: bool = False) -> Iterator[LiteralCall]:
        name = called_name(call)
        if name in self.tools:
            try:
                kwargs: dict[str, Any] = {}
                for keyword in call.keywords:
                    if keyword.arg is None:
                        raise _Stop
                    kwargs[keyword.arg] = _literal(keyword.value)
                yield LiteralCall(name or "", [_literal(argument) for argument in call.args], kwargs)
            except _Stop:
                yield from self._of_all(call.args)  # what the arguments call is called first
                raise
        elif not call.keywords and (
            (name == "print" and not awaited) or (awaited and name == "asyncio__gather" and "asyncio" in self._bound)
        ):
            yield from self._of_all(call.args)
        else:
            raise _Stop


def newlines(text: str) -> str:
    """Return a text with every line ended by a line feed, as programs are read."""
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")


def _literal(node: ast.expr | None, deepest: int = _DEEPEST) -> Any:
    """Return the JSON value that an expression writes out, which arrives as it is when the program passes it."""
    match node:
        case ast.Constant(value=None | bool() as value):
            return value
        case ast.Constant(value=str() as value) if _is_unicode(value):
            return value
        case ast.Constant(value=int() as value) if value.bit_length() <= _MOST_BITS:
            return value
        case ast.Constant(value=float() as value) if math.isfinite(value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            type(value) is not bool
        ):
            return -_literal(node.operand)
        case ast.List(elts=parts) if deepest:
            return [_literal(part, deepest - 1) for part in parts]
        case ast.Dict(keys=keys, values=parts) if deepest:
            named = [_literal(key) for key in keys]
            if not all(isinstance(name, str) for name in named):
                raise _Stop
            return dict(zip(named, (_literal(part, deepest - 1) for part in parts), strict=True))
        case _:
            raise _Stop


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogate, which a program cannot pass on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
