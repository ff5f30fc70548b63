"""Analysis of a program for its awaited calls: an engine answers those with a future, and all others with a value.

A call is awaited when its value flows into `await` or into a function that takes coroutines, such as `asyncio.gather`:
directly, through a variable, a list or a comprehension, or as the value that a plain function of the program returns.
Nothing of the program is run. One value for both uses cannot take its place: nothing can be awaited that is a number, a
text or a list as well, and `gather` would find calls that ran one after another.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["awaited_calls"]

_TAKERS = frozenset(
    {"as_completed", "create_task", "ensure_future", "gather", "run", "shield", "wait", "wait_for"}
)  # of asyncio: what takes coroutines
_METHODS = frozenset({"create_task", "run_coroutine_threadsafe", "run_until_complete"})  # of groups and loops
_PASSING = frozenset({"list", "tuple", "set", "zip", "enumerate", "reversed", "iter", "next"})
_READERS = frozenset({"values", "items", "copy", "pop", "get"})  # methods that give what a container holds
_WRITERS = frozenset({"append", "add", "insert", "extend", "appendleft", "setdefault", "update"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(slots=True, eq=False)
class _Scope:
    """The names of a function, or of the program."""

    parent: _Scope | None = None
    bindings: defaultdict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict[str, list[ast.expr]](list))

    def find(self, name: str) -> _Scope:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.bindings:
                return scope
            scope = scope.parent
        return self


def awaited_calls(tree: ast.Module) -> list[ast.Call]:
    """Return the calls whose value the program awaits."""
    return _Flow(tree).awaited()


class _Flow:
    def __init__(self, tree: ast.Module) -> None:
        self._todo: list[tuple[ast.expr, _Scope]] = []
        self._returns: defaultdict[str, list[tuple[ast.expr, _Scope]]] = defaultdict(list)
        self._read(tree)

    def awaited(self) -> list[ast.Call]:
        found: list[ast.Call] = []
        visited: set[tuple[int, int]] = set()
        while self._todo:
            expression, scope = self._todo.pop()
            key = (id(expression), id(scope))
            if key in visited:
                continue
            visited.add(key)
            if isinstance(expression, ast.Call):
                found.append(expression)
                if isinstance(expression.func, ast.Name):
                    self._todo += self._returns[expression.func.id]
            elif isinstance(expression, ast.Name):
                owner = scope.find(expression.id)
                self._todo += [(bound, owner) for bound in owner.bindings[expression.id]]
            self._todo += [(part, scope) for part in _parts(expression)]
        return found

    # --- reading the program once

    def _read(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, _Scope]] = [(tree, _Scope())]
        while stack:
            node, scope = stack.pop()
            inner = _Scope(scope) if isinstance(node, _Function) else scope
            self._note(node, inner)
            stack += [(child, inner) for child in ast.iter_child_nodes(node)]

    def _note(self, node: ast.AST, scope: _Scope) -> None:
        match node:
            case ast.Await(value=value):
                self._todo.append((value, scope))
            case ast.Call():
                self._note_call(node, scope)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _bind(target, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _bind(target, value, scope)
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                _bind(target, value, scope)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                _bind(target, value, scope)
            case ast.FunctionDef(name=name):
                self._returns[name] += [(value, scope) for value in _returned(node)]
            case _:
                pass
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._returns[target.id].append((node.value.body, scope))

    def _note_call(self, call: ast.Call, scope: _Scope) -> None:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        match call.func:
            case ast.Attribute(value=ast.Name(id="asyncio"), attr=name) | ast.Name(id=name) if name in _TAKERS:
                self._todo += [(argument, scope) for argument in arguments]
            case ast.Attribute(attr=name) if name in _METHODS:
                self._todo += [(argument, scope) for argument in arguments]
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _WRITERS:
                scope.find(name).bindings[name] += arguments
            case _:
                pass


def _bind(target: ast.expr, value: ast.expr, scope: _Scope) -> None:
    targets = [target]
    while targets:
        match targets.pop():
            case ast.Name(id=name):
                scope.bindings[name].append(value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                targets += elements
            case ast.Starred(value=inner):
                targets.append(inner)
            case ast.Subscript(value=ast.Name(id=name)):
                scope.find(name).bindings[name].append(value)
            case _:
                pass


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, _Function | ast.ClassDef):
            stack += ast.iter_child_nodes(node)


def _parts(expression: ast.expr) -> list[ast.expr]:
    """Return the expressions that this one's value is made of, as far as awaiting goes."""
    match expression:
        case ast.Starred(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
            return [value]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.ListComp(elt=element) | ast.SetComp(elt=element) | ast.GeneratorExp(elt=element):
            return [element]
        case ast.Dict(values=values) | ast.BoolOp(values=values):
            return values
        case ast.DictComp(value=value):
            return [value]
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _PASSING:
            return arguments
        case ast.Call(func=ast.Attribute(value=holder, attr=name)) if name in _READERS:
            return [holder]
        case _:
            return []
