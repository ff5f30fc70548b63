"""Facts of a program, read from its syntax tree: what it defines, uses, imports and calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

__all__ = ["Import", "ProgramFacts", "Use", "called_name"]

N = TypeVar("N", bound=ast.AST)

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
            kind = type(node)
            note = _NOTES.get(kind)
            if note is not None:
                note(self, node, catches)
            if kind not in _LEAVES:
                around = _AROUND.get(kind)
                stack += _inside(node, catches) if around is None else around(node, catches)

    # --- what each kind of node adds

    def name(self, node: ast.Name, catches: frozenset[str]) -> None:
        """Note a name that is read or bound."""
        if isinstance(node.ctx, ast.Load):
            self.names.append(Use(node, catches))
            self.is_open = self.is_open or node.id in _OPEN
        else:
            self.bound.add(node.id)

    def call(self, node: ast.Call, catches: frozenset[str]) -> None:
        """Note a call."""
        self.calls.append(Use(node, catches))

    def attribute(self, node: ast.Attribute, catches: frozenset[str]) -> None:
        """Note an attribute."""
        self.attributes.append(Use(node, catches))
        self.is_open = self.is_open or node.attr in _OPEN_ATTRIBUTES

    def importing(self, node: ast.Import, catches: frozenset[str]) -> None:
        """Note `import a.b as c`."""
        for alias in node.names:
            self._module(alias.name, node.lineno, catches)
            self.bound.add(alias.asname or alias.name.partition(".")[0])

    def importing_from(self, node: ast.ImportFrom, catches: frozenset[str]) -> None:
        """Note `from a import b`."""
        if node.module and not node.level:
            self._module(node.module, node.lineno, catches)
        self.bound.update(alias.asname or alias.name for alias in node.names)
        self.is_open = self.is_open or any(alias.name == "*" for alias in node.names)

    def _module(self, module: str, line: int, catches: frozenset[str]) -> None:
        self.is_open = self.is_open or module.partition(".")[0] in _OPEN_MODULES
        self.imports.append(Import(module, line, catches))

    def declaring(self, node: ast.Global | ast.Nonlocal, catches: frozenset[str]) -> None:
        """Note `global a`."""
        self.bound.update(node.names)

    def handling(self, node: ast.ExceptHandler, catches: frozenset[str]) -> None:
        """Note `except A as b`."""
        self.handled |= _named(node.type)
        self.defining(node, catches)

    def defining(self, node: Any, catches: frozenset[str]) -> None:
        """Note what binds its `name`: functions, classes, patterns, type parameters."""
        if node.name is not None:
            self.bound.add(node.name)

    def argument(self, node: ast.arg, catches: frozenset[str]) -> None:
        """Note an argument of a function."""
        self.bound.add(node.arg)

    def rest(self, node: ast.MatchMapping, catches: frozenset[str]) -> None:
        """Note `case {**rest}`."""
        self.bound.update({node.rest} if node.rest else ())


_Guarded: TypeAlias = tuple[ast.AST, frozenset[str]]
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchAs, ast.MatchStar, *_TYPE_PARAMETERS)
_NOTES: Mapping[type[ast.AST], Callable[[ProgramFacts, Any, frozenset[str]], None]] = {
    **dict.fromkeys(_DEFINING, ProgramFacts.defining),
    ast.Name: ProgramFacts.name,
    ast.Call: ProgramFacts.call,
    ast.Attribute: ProgramFacts.attribute,
    ast.Import: ProgramFacts.importing,
    ast.ImportFrom: ProgramFacts.importing_from,
    ast.Global: ProgramFacts.declaring,
    ast.Nonlocal: ProgramFacts.declaring,
    ast.ExceptHandler: ProgramFacts.handling,
    ast.arg: ProgramFacts.argument,
    ast.MatchMapping: ProgramFacts.rest,
}
_LEAVES = frozenset({ast.Name, ast.Constant, ast.Import, ast.ImportFrom, ast.arg, ast.Pass})
_NO_NODES = frozenset({ast.Load, ast.Store, ast.Del})


def _inside(node: ast.AST, catches: frozenset[str]) -> list[_Guarded]:
    """Return what is in a node, with what is caught around it; annotations left out, which need not be defined."""
    found: list[_Guarded] = []
    for field in node._fields:
        if field in _ANNOTATIONS:
            continue
        value: Any = getattr(node, field, None)
        if isinstance(value, ast.AST):
            if type(value) not in _NO_NODES:
                found.append((value, catches))
        elif isinstance(value, list):
            found += [(part, catches) for part in cast("list[Any]", value) if isinstance(part, ast.AST)]
    return found


def _inside_try(node: ast.Try | ast.TryStar, catches: frozenset[str]) -> list[_Guarded]:
    inner = catches.union(*(_named(handler.type) for handler in node.handlers))
    rest: list[ast.AST] = [*node.handlers, *node.orelse, *node.finalbody]
    return [*((part, inner) for part in node.body), *((part, catches) for part in rest)]


def _inside_with(node: ast.With | ast.AsyncWith, catches: frozenset[str]) -> list[_Guarded]:
    inner = catches.union(*(_suppressed(item.context_expr) for item in node.items))
    return [*((part, catches) for part in node.items), *((part, inner) for part in node.body)]


def _inside_if(node: ast.If, catches: frozenset[str]) -> list[_Guarded]:
    if _is_for_types(node.test):
        return [(part, catches) for part in node.orelse]
    return _inside(node, catches)


_ANNOTATIONS = frozenset({"annotation", "returns"})
_AROUND: Mapping[type[ast.AST], Callable[[Any, frozenset[str]], list[_Guarded]]] = {
    ast.Try: _inside_try,
    ast.TryStar: _inside_try,
    ast.With: _inside_with,
    ast.AsyncWith: _inside_with,
    ast.If: _inside_if,
}


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


def called_name(call: ast.Call) -> str | None:
    """Return the tool that a call names: `name`, or `parent__child` where `parent.child` is written."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=parent), attr=child):
            return f"{parent}__{child}"
        case _:
            return None
