"""Facts of a program, read from its syntax tree: what it defines, uses, imports and calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

N = TypeVar("N", bound=ast.AST)
_Guarded: TypeAlias = tuple[ast.AST, frozenset[str]]

_OPEN = frozenset({"exec", "eval", "compile", "globals", "locals", "vars", "dir", "__builtins__", "__import__"})
"""Names with which a program can define others, or ask whether they are defined."""
_OPEN_MODULES = frozenset({"builtins", "__main__", "inspect", "importlib", "gc"})
_OPEN_ATTRIBUTES = frozenset(
    {"modules", "_getframe", "f_globals", "f_locals", "f_builtins", "__globals__", "__dict__", "_convert_"}
)
_CATCH_ALL = "BaseException"
_TYPE_PARAMETERS = tuple(
    getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name)
)  # Python 3.12 and newer
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar, *_TYPE_PARAMETERS)
_LEAVES = (ast.Name, ast.Constant)
_UNREAD = frozenset({"annotation", "returns", "ctx"})
"""Fields of nodes that are not looked into."""


@dataclass(frozen=True, slots=True)
class Use(Generic[N]):
    """A node, and the exceptions that are caught around it, by name."""

    node: N
    catches: frozenset[str]


@dataclass(frozen=True, slots=True)
class Import:
    """A module that is imported, and the exceptions that are caught around it."""

    module: str
    line: int
    catches: frozenset[str]


class ProgramFacts:
    """The facts of one program.

    Attributes:
        bound: Every name that it binds, in any scope.
        names: The names it reads, annotations left out.
        calls: Its calls.
        attributes: The attributes it reads.
        imports: The modules it imports.
        handled: The exceptions that it names in a handler, wherever that is.
        is_open: Whether it may define names in ways that cannot be read, or ask which there are.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: set[str] = set()
        self.names: list[Use[ast.Name]] = []
        self.calls: list[Use[ast.Call]] = []
        self.attributes: list[Use[ast.Attribute]] = []
        self.imports: list[Import] = []
        self.handled: set[str] = set()
        self.is_open = False
        stack: list[_Guarded] = [(tree, frozenset())]
        while stack:
            node, catches = stack.pop()
            self._note(node, catches)
            if isinstance(node, ast.If) and _is_for_types(node.test):
                stack += [(part, catches) for part in node.orelse]
            elif not isinstance(node, _LEAVES):
                guarded, inner = _guarded(node, catches) if isinstance(node, ast.stmt) else ((), catches)
                for field in node._fields:
                    value: Any = getattr(node, field, None)
                    if isinstance(value, list):
                        around = inner if value is guarded else catches
                        stack += [(part, around) for part in cast("list[Any]", value) if isinstance(part, ast.AST)]
                    elif isinstance(value, ast.AST) and field not in _UNREAD:
                        stack.append((value, catches))

    def _note(self, node: ast.AST, catches: frozenset[str]) -> None:
        """Add the names, imports, calls and handlers of one node."""
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.names.append(Use(node, catches))
                self.is_open = self.is_open or name in _OPEN
            case ast.Call():
                self.calls.append(Use(node, catches))
            case ast.Attribute(attr=name):
                self.attributes.append(Use(node, catches))
                self.is_open = self.is_open or name in _OPEN_ATTRIBUTES
            case ast.Name(id=name) | ast.arg(arg=name) | ast.MatchMapping(rest=str(name)):
                self.bound.add(name)
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._add_import(alias.name, node.lineno, catches)
                    self.bound.add(alias.asname or alias.name.partition(".")[0])
            case ast.ImportFrom(module=module, names=aliases):
                if module and not node.level:
                    self._add_import(module, node.lineno, catches)
                self.bound.update(alias.asname or alias.name for alias in aliases)
                self.is_open = self.is_open or any(alias.name == "*" for alias in aliases)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.bound.update(names)
            case ast.ExceptHandler(type=kind, name=name):
                self.handled |= _named(kind)
                self.bound |= {name} if name is not None else set()
            case _ if isinstance(node, _DEFINING):
                self.bound |= {name} if (name := getattr(node, "name", None)) is not None else set[str]()
            case _:
                pass

    def _add_import(self, module: str, line: int, catches: frozenset[str]) -> None:
        self.is_open = self.is_open or module.partition(".")[0] in _OPEN_MODULES
        self.imports.append(Import(module, line, catches))


def _guarded(node: ast.stmt, catches: frozenset[str]) -> tuple[Sequence[ast.stmt], frozenset[str]]:
    """Return the body of a `try` or a `with`, and what is caught in it."""
    match node:
        case ast.Try(body=body, handlers=handlers) | ast.TryStar(body=body, handlers=handlers):
            return body, catches.union(*(_named(handler.type) for handler in handlers))
        case ast.With(body=body, items=items) | ast.AsyncWith(body=body, items=items):
            return body, catches.union(*(_suppressed(item.context_expr) for item in items))
        case _:
            return (), catches


def _named(kind: ast.expr | None) -> set[str]:
    """Return the exceptions that a handler names; a bare one catches all."""
    if kind is None:
        return {_CATCH_ALL}
    return {part.id for part in ast.walk(kind) if isinstance(part, ast.Name)}


def _suppressed(context: ast.expr) -> set[str]:
    match context:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=kinds):
            return set[str]().union(*map(_named, kinds))
        case _:
            return set()


def _is_for_types(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case _:
            return False


def called_name(call: ast.Call) -> str | None:
    """Return the tool that a call names: `name`, or `parent__child` where `parent.child` is written."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=parent), attr=child):
            return f"{parent}__{child}"
        case _:
            return None
