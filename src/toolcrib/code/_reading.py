"""A program read once for what it defines, uses, imports and calls, without being run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

__all__ = ["Import", "Reading", "Use"]

N = TypeVar("N", bound=ast.AST)

_OPEN = frozenset({"exec", "eval", "compile", "globals", "locals", "vars", "dir", "__builtins__", "__import__"})
"""Names with which a program can define others, or ask whether they are defined."""
_OPEN_MODULES = frozenset({"builtins", "__main__", "inspect", "importlib", "gc"})
_OPEN_ATTRIBUTES = frozenset({"modules", "_getframe", "f_globals", "f_locals", "f_builtins", "__globals__", "__dict__"})
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CATCH_ALL = "BaseException"
_TYPE_PARAMETERS = tuple(
    getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name)
)  # Python 3.12 and newer


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


class Reading:
    """What a program has.

    Attributes:
        bound: Every name that it binds, in whatever scope.
        names: The names it reads, annotations left out.
        calls: Its calls.
        attributes: The attributes it reads.
        imports: The modules it imports.
        handled: The exceptions that it names in a handler, wherever that is.
        is_open: It may define names in ways that cannot be read, or ask which there are.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.bound: set[str] = set()
        self.names: list[Use[ast.Name]] = []
        self.calls: list[Use[ast.Call]] = []
        self.attributes: list[Use[ast.Attribute]] = []
        self.imports: list[Import] = []
        self.handled: set[str] = set()
        self.is_open = False
        stack: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
        while stack:
            node, catches = stack.pop()
            self._note(node, catches)
            stack += self._inside(node, catches)

    def _inside(self, node: ast.AST, catches: frozenset[str]) -> Iterator[tuple[ast.AST, frozenset[str]]]:
        """Yield what is in a node, with what is caught around it."""
        if isinstance(node, ast.Try | ast.TryStar):
            inner = catches.union(*(_named(handler.type) for handler in node.handlers))
            yield from ((part, inner) for part in node.body)
            rest = [*node.handlers, *node.orelse, *node.finalbody]
            yield from ((part, catches) for part in rest)
        elif isinstance(node, ast.With | ast.AsyncWith):
            inner = catches.union(*(_suppressed(item.context_expr) for item in node.items))
            yield from ((part, catches) for part in node.items)
            yield from ((part, inner) for part in node.body)
        elif isinstance(node, ast.If) and _is_for_types(node.test):
            yield from ((part, catches) for part in node.orelse)
        else:
            skipped = _annotations(node)
            yield from ((part, catches) for part in ast.iter_child_nodes(node) if part not in skipped)

    def _note(self, node: ast.AST, catches: frozenset[str]) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.names.append(Use(node, catches))
                self.is_open = self.is_open or name in _OPEN
            case ast.Name(id=name):
                self.bound.add(name)
            case ast.Call():
                self.calls.append(Use(node, catches))
            case ast.Attribute(attr=name):
                self.attributes.append(Use(node, catches))
                self.is_open = self.is_open or name in _OPEN_ATTRIBUTES
            case ast.Import(names=aliases):
                for alias in aliases:
                    self._import(alias.name, node.lineno, catches)
                    self.bound.add(alias.asname or alias.name.partition(".")[0])
            case ast.ImportFrom(module=module, names=aliases, level=level):
                self._import(module or "", node.lineno, catches, relative=level > 0)
                self.bound.update(alias.asname or alias.name for alias in aliases)
                self.is_open = self.is_open or any(alias.name == "*" for alias in aliases)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.bound.update(names)
            case ast.ExceptHandler(type=kind, name=name):
                self.handled |= _named(kind)
                self.bound.update({name} if name else ())
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.bound.add(name)
            case ast.ClassDef(name=name):
                self.bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self.bound.add(name)
            case _ if isinstance(node, _TYPE_PARAMETERS):
                self.bound.add(str(getattr(node, "name", "")))
            case _:
                pass

    def _import(self, module: str, line: int, catches: frozenset[str], *, relative: bool = False) -> None:
        self.is_open = self.is_open or module.partition(".")[0] in _OPEN_MODULES
        if module and not relative:
            self.imports.append(Import(module, line, catches))


def _annotations(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return the annotations of a node: they need not be defined."""
    match node:
        case ast.AnnAssign(annotation=annotation):
            return (annotation,)
        case ast.arg(annotation=ast.expr() as annotation):
            return (annotation,)
        case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
            return (returns,)
        case _:
            return ()


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
    return (
        isinstance(test, ast.Name | ast.Attribute)
        and (test.id if isinstance(test, ast.Name) else test.attr) == "TYPE_CHECKING"
    )
