"""Data flow of a program, read from its syntax tree: which values may come into which others.

It is an over-approximation: what may flow is found, through names, containers, functions, methods and what they change,
in any order of the program's lines. Which branch runs is not looked at.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from typing import Final

from toolcrib.code._program_facts import ProgramFacts, called_name
from toolcrib.code._value_graph import ANYTHING, SEAL, CallSite, CannotFollow, FunctionPlaces, Scope, Token, ValueGraph

__all__ = ["ALL_ARGUMENTS", "ERROR", "FlowReader"]

ALL_ARGUMENTS: Final = "*"
"""The key of what may come into any argument of a tool."""
ERROR: Final = "error"
"""The field that stands for the text of a tool's error."""

_MOST_CHARS: Final = 20_000
_BUILTINS: Final = frozenset(dir(builtins)) | {"parallel"}
_KEEPS_FIELDS: Final = frozenset(
    {"enumerate", "filter", "frozenset", "iter", "list", "max", "min", "next", "reversed", "set", "sorted", "tuple"}
    | {"gather", "parallel", "zip"}
)
_MAKES_ATOMS: Final = frozenset({"abs", "chr", "float", "format", "int", "len", "ord", "repr", "round", "str"})
_CHANGES_NOTHING: Final = frozenset(
    {"copy", "date", "get", "isoformat", "items", "keys", "strftime", "timestamp", "values"}
    | {name for kind in (str, bytes, int, float) for name in dir(kind) if not name.startswith("_")}
)
_RETURNS_NOTHING: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "remove", "reverse", "sort", "update"}
)


class FlowReader:
    """Reads a program into a graph.

    Args:
        facts: Facts of the program.
        tools: The names by which it calls tools.
        changes: Whether functions of modules may change what they are given.

    Attributes:
        graph: The graph.
    """

    def __init__(self, facts: ProgramFacts, tools: frozenset[str], *, changes: bool) -> None:
        self.graph = ValueGraph()
        self._bound, self._tools, self._changes = facts.bound, tools, changes
        self._imported: set[str] = set()
        self._functions: dict[str, list[FunctionPlaces]] = {}
        self._function_of: dict[ast.AST, FunctionPlaces] = {}
        self._anything = self.graph.place(ANYTHING)

    def read(self, tree: ast.Module) -> None:
        """Read the whole program."""
        stored: set[str] = set()
        for node in ast.walk(tree):  # functions first, so that a call finds them
            match node:
                case ast.ClassDef():
                    raise CannotFollow
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    self._imported |= {alias.asname or alias.name.partition(".")[0] for alias in names}
                case (
                    ast.FunctionDef(name=name, args=arguments, decorator_list=[])
                    | ast.AsyncFunctionDef(name=name, args=arguments, decorator_list=[])
                ):
                    self._add_function(name, node, arguments)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    raise CannotFollow
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as made):
                    self._add_function(name, made, made.args)
                case ast.Name(id=name, ctx=ast.Store()):
                    stored.add(name)
                case _:
                    pass
        if stored & self._imported:
            raise CannotFollow
        scope = Scope(self.graph, None, {}, self._anything)
        self._statements(tree.body, scope)

    def _add_function(self, name: str, node: ast.AST, arguments: ast.arguments) -> None:
        made = self._function_of[node] = self._function(arguments)
        self._functions.setdefault(name, []).append(made)

    def _function(self, arguments: ast.arguments) -> FunctionPlaces:
        order = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        rest = [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
        every = (*order, *(each.arg for each in arguments.kwonlyargs), *rest)
        places = {name: self.graph.place() for name in every}
        return FunctionPlaces(order, places, [places[name] for name in rest], self.graph.place())

    def _read_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, outer: Scope) -> FunctionPlaces:
        function = self._function_of.get(node) or self._function(node.args)
        for default in (each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None):
            value = self._value(default, outer)
            for place in function.places.values():
                self.graph.same(value, place)
        inner = Scope(self.graph, outer, dict(function.places), function.result)
        if isinstance(node, ast.Lambda):
            self.graph.same(self._value(node.body, inner), function.result)
        else:
            self._statements(node.body, inner)
        return function

    # --- statements

    def _statements(self, body: Iterable[ast.AST], scope: Scope) -> None:
        for node in body:
            self._statement(node, scope)

    def _statement(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._read_function(node, scope)
            case ast.Assign(targets=targets, value=value):
                made = self._value(value, scope)
                for target in targets:
                    self._store(target, made, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._store(target, self._value(value, scope), scope)
            case ast.AugAssign(target=target, value=value):
                made = self._value(value, scope)
                self._store(target, made, scope)
                self.graph.put(made, self._value(target, scope))
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._store(target, self._parts_of(value, scope), scope)
                self._statements((*node.body, *node.orelse), scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                made = self.graph.place()
                self.graph.pass_on(self._value(value, scope), made)
                self._store(target, made, scope)
            case ast.Return(value=ast.expr() as value):
                self.graph.same(self._value(value, scope), scope.result)
            case ast.Try() | ast.TryStar():
                self._try(node, scope)
            case ast.Match(subject=subject, cases=cases):
                made = self._value(subject, scope)
                for each in cases:
                    self._capture(each.pattern, made, scope)
                    self._statements([each.guard] if each.guard is not None else [], scope)
                    self._statements(each.body, scope)
            case ast.expr():
                self._value(node, scope)
            case _:
                self._statements(ast.iter_child_nodes(node), scope)

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope) -> None:
        """Read a `try`; the text of an error may have any value that is named where it is raised."""
        self._statements((*node.body, *node.orelse, *node.finalbody), scope)
        text = self.graph.place()
        for part in (each for line in node.body for each in ast.walk(line)):
            if isinstance(part, ast.Call) and (name := self._tool_of(part)) is not None:
                self.graph.copy(self.graph.place(Token(name, (ERROR,))), text)
            elif isinstance(part, ast.Name) and part.id in self._functions:
                self.graph.copy(self._anything, text)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in self._bound:
                self.graph.copy(scope.place(part.id), text)
        for handler in node.handlers:
            own = {} if handler.name is None else {handler.name: text}
            self._statements(handler.body, Scope(self.graph, scope, own, scope.result))

    def _capture(self, pattern: ast.AST, value: int, scope: Scope) -> None:
        for part in ast.walk(pattern):
            name = part.rest if isinstance(part, ast.MatchMapping) else getattr(part, "name", None)
            if isinstance(name, str):
                self.graph.pass_on(value, scope.place(name))

    def _store(self, target: ast.expr, value: int, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self.graph.same(value, scope.place(name))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                part, rest = self.graph.place(), self.graph.place()
                self.graph.part(value, part, None)
                self.graph.share(value, rest)
                for each in targets:
                    self._store(each, rest if isinstance(each, ast.Starred) else part, scope)
            case ast.Starred(value=inner):
                self._store(inner, value, scope)
            case ast.Attribute(value=holder):
                self._put(value, holder, scope)
            case ast.Subscript(value=holder, slice=key):
                self._put(value, holder, scope)
                self._put(self._value(key, scope), holder, scope)
            case _:
                raise CannotFollow

    def _put(self, value: int, holder: ast.expr, scope: Scope) -> None:
        if self._is_module(holder):
            raise CannotFollow
        self.graph.put(value, self._value(holder, scope))

    # --- expressions

    def _value(self, node: ast.expr, scope: Scope) -> int:
        """Return the place of an expression's value."""
        match node:
            case ast.Constant(value=(str() | int() | float()) as value) if not isinstance(value, bool):
                return self.graph.place(Token(literal=value))
            case ast.Constant():
                return self.graph.place()
            case ast.Name(id=name):
                return self._named(name, scope)
            case ast.Attribute() | ast.Subscript():
                return self._field(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Lambda():
                function = self._read_function(node, scope)
                return function.result if node in self._function_of else self._escaped(function)
            case ast.NamedExpr(target=target, value=value):
                made = self._value(value, scope)
                self._store(target, made, scope)
                return made
            case ast.List(elts=[first, *given]) | ast.Tuple(elts=[first, *given]) if self._is_tool(first):
                return self._tool_call(CallSite(_name_of(first)), given, (), scope)
            case ast.Dict() | ast.List() | ast.Tuple() | ast.Set():
                return self._container(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value):
                self.graph.pass_on(self._value(value, scope), scope.result, None)
                return self._anything
            case ast.Starred(value=value):
                return self._parts_of(value, scope)
            case _:
                return self._operation(node, scope)

    def _field(self, node: ast.Attribute | ast.Subscript, scope: Scope) -> int:
        """Return the place of an attribute, an item or a slice."""
        graph, made = self.graph, self.graph.place()
        if isinstance(node, ast.Attribute):
            self._require_no_tool(node)
            graph.part(self._value(node.value, scope), made, SEAL)
            return made
        value = self._value(node.value, scope)
        match node.slice:
            case ast.Constant(value=str(key)):
                graph.part(value, made, key)
            case ast.Slice() as key:
                graph.share(value, made)
                self._copy_parts(key, made, scope)
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                graph.part(value, made, None)
            case key:
                graph.part(value, made, SEAL)
                graph.copy(self._value(key, scope), made)
        return made

    def _container(self, node: ast.Dict | ast.List | ast.Tuple | ast.Set, scope: Scope) -> int:
        """Return the place of a container that is written out."""
        graph, made = self.graph, self.graph.place()
        if isinstance(node, ast.Dict):
            for part in (*node.keys, *node.values):
                if part is not None:
                    graph.hold(self._value(part, scope), made)
            return made
        for part in node.elts:
            if isinstance(part, ast.Starred):
                graph.share(self._value(part.value, scope), made)
            else:
                graph.hold(self._value(part, scope), made, None)
        return made

    def _operation(self, node: ast.expr, scope: Scope) -> int:
        """Return the place of what an operator makes of its operands."""
        graph, made = self.graph, self.graph.place()
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, scope)
                for part in (body, orelse):
                    graph.same(self._value(part, scope), made)
            case ast.Await(value=value):
                graph.same(self._value(value, scope), made)
            case ast.BoolOp(values=values):
                for part in values:
                    graph.same(self._value(part, scope), made)
            case ast.BinOp(left=left, right=right):
                for part in (left, right):
                    graph.share(self._value(part, scope), made)
            case ast.JoinedStr() | ast.FormattedValue() | ast.Compare() | ast.UnaryOp() | ast.Slice():
                self._copy_parts(node, made, scope)
            case _:
                raise CannotFollow
        return made

    def _copy_parts(self, node: ast.expr, made: int, scope: Scope) -> None:
        """Have a place hold what is made of the parts of an expression, but for the numbers of a slice."""
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and not (isinstance(node, ast.Slice) and isinstance(part, ast.Constant)):
                self.graph.copy(self._value(part, scope), made)

    def _parts_of(self, node: ast.expr, scope: Scope) -> int:
        """Return the place of what a loop takes one by one."""
        made = self.graph.place()
        self.graph.part(self._value(node, scope), made, None)
        return made

    def _named(self, name: str, scope: Scope) -> int:
        if name in self._bound:
            made = scope.place(name)
            for function in self._functions.get(name, ()):
                self.graph.same(self._escaped(function), made)
            return made
        if name in self._tools:  # which is called in a way that is not followed
            self.graph.give(CallSite(name), [(ALL_ARGUMENTS, self._anything)])
            return self._anything
        return self.graph.place() if name in _BUILTINS else self._anything

    def _escaped(self, function: FunctionPlaces) -> int:
        """Return the place of a function that may be called from anywhere."""
        for place in function.places.values():
            self.graph.copy(self._anything, place)
        return function.result

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, outer: Scope) -> int:
        made = self.graph.place()
        own = [part.id for each in node.generators for part in ast.walk(each.target) if isinstance(part, ast.Name)]
        scope = Scope(self.graph, outer, {name: self.graph.place() for name in own}, outer.result)
        for number, each in enumerate(node.generators):
            self._store(each.target, self._parts_of(each.iter, scope if number else outer), scope)
            self._statements(each.ifs, scope)
        if isinstance(node, ast.DictComp):
            for part in (node.key, node.value):
                self.graph.hold(self._value(part, scope), made)
        else:
            self.graph.hold(self._value(node.elt, scope), made, None)
        return made

    # --- calls

    def _is_tool(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._tools

    def _tool_of(self, node: ast.Call) -> str | None:
        root = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        name = called_name(node)
        is_own = isinstance(root, ast.Name) and root.id in self._bound
        return name if name in self._tools and not is_own else None

    def _require_no_tool(self, node: ast.expr) -> None:
        """Raise CannotFollow for `parent.child` where it may be a tool that is not called here and now."""
        root = f"{_root_of(node)}__"
        if any(tool.startswith(root) for tool in self._tools):
            raise CannotFollow

    def _is_module(self, node: ast.expr) -> bool:
        return _root_of(node) in self._imported

    def _call(self, node: ast.Call, scope: Scope) -> int:
        name = self._tool_of(node)
        if name is not None:
            site = CallSite(name, node.lineno, node.end_lineno or node.lineno)
            return self._tool_call(site, node.args, node.keywords, scope)
        match node.func:
            case ast.Name(id="map") if node.args and self._is_tool(node.args[0]):
                return self._tool_call(CallSite(_name_of(node.args[0])), node.args[1:], node.keywords, scope)
            case ast.Name(id=called) if called in self._functions:
                made = self._own_call(node, self._functions[called], scope)
                self.graph.pass_on(scope.place(called), made, None)
                return made
            case _:
                return self._other_call(node, scope)

    def _tool_call(
        self, site: CallSite, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], scope: Scope
    ) -> int:
        is_spread = any(isinstance(each, ast.Starred) for each in args)
        given: list[tuple[str | int, int]] = [
            (ALL_ARGUMENTS if is_spread else number, self._value(each, scope)) for number, each in enumerate(args)
        ]
        given += [(each.arg or ALL_ARGUMENTS, self._value(each.value, scope)) for each in keywords]
        self.graph.give(site, given)
        return self.graph.place(Token(site.tool, goes_on=True))

    def _own_call(self, node: ast.Call, functions: Iterable[FunctionPlaces], scope: Scope) -> int:
        made = self.graph.place()
        given: list[tuple[str | int | None, int]] = [(n, self._value(each, scope)) for n, each in enumerate(node.args)]
        if any(isinstance(each, ast.Starred) for each in node.args):
            given = [(None, value) for _, value in given]
        given += [(each.arg, self._value(each.value, scope)) for each in node.keywords]
        for function in functions:
            for key, value in given:
                for place in _parameters(function, key):
                    self.graph.pass_on(value, place, None)
            self.graph.same(function.result, made)
        return made

    def _other_call(self, node: ast.Call, scope: Scope) -> int:
        """Read a call of a builtin, of a module's function, of a method, or of any value."""
        graph, func, name = self.graph, node.func, _name_of(node.func)
        if isinstance(func, ast.Name) and name not in self._bound | _BUILTINS:
            return self._anything  # a function of the toolkit's, or of an earlier program
        is_plain = self._is_module(func) or (isinstance(func, ast.Name) and name not in self._bound)
        args = [*node.args, *(each.value for each in node.keywords)]
        functions = [each for arg in args for each in self._functions_in(arg, scope)]
        made = self._base_field(node, scope)
        if made is None:
            made = graph.place()
            given = [self._value(arg, scope) for arg in args if not self._is_function(arg)]
            if not is_plain:
                base = self._value(func.value if isinstance(func, ast.Attribute) else func, scope)
                if not (isinstance(func, ast.Attribute) and name in _CHANGES_NOTHING):
                    for value in given:
                        graph.put(value, base)
                given.append(base)
            target = None if name in _RETURNS_NOTHING and not is_plain else made
            self._pass_all(given, target, name if is_plain else "", functions)
        for function in functions:
            graph.pass_on(function.result, made, None)
        return made

    def _base_field(self, node: ast.Call, scope: Scope) -> int | None:
        """Return the place of a field that is got by `get`, or of its default; None for another call."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=base, attr="get"), args=[ast.Constant(value=str(key)), *default], keywords=[]
            ) if not self._is_module(base):
                made = self.graph.place()
                self.graph.part(self._value(base, scope), made, key)
                for each in default:
                    self.graph.same(self._value(each, scope), made)
                return made
            case _:
                return None

    def _pass_all(self, given: Sequence[int], made: int | None, name: str, functions: Sequence[FunctionPlaces]) -> None:
        """Have what a call is given flow into its result, and into the functions that it is given."""
        for value in given:
            if made is not None and name in _MAKES_ATOMS:
                self.graph.copy(value, made)
            elif made is not None:
                self.graph.pass_on(value, made, None if name in _KEEPS_FIELDS else SEAL)
            for function in functions:
                for place in function.places.values():
                    self.graph.pass_on(value, place, None)
            for other in given if name and self._changes else ():
                self.graph.put(other, value)

    def _is_function(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in self._functions)

    def _functions_in(self, node: ast.expr, scope: Scope) -> Iterable[FunctionPlaces]:
        """Return the functions that an argument is."""
        if isinstance(node, ast.Lambda):
            return [self._read_function(node, scope)]
        return self._functions.get(node.id, ()) if isinstance(node, ast.Name) else ()


def _root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _parameters(function: FunctionPlaces, key: str | int | None) -> Iterable[int]:
    """Return the parameters that an argument may come to, by its place or name; None where that is not known."""
    if isinstance(key, int) and key < len(function.order):
        return [function.places[function.order[key]]]
    if isinstance(key, str) and key in function.places:
        return [function.places[key]]
    return function.rest if key is not None and function.rest else function.places.values()
