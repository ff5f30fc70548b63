"""Optional `await`: a program may await a tool's call or not, wherever the call stands.

The calls that are awaited are marked in the program, so that they begin when they are awaited, several at once. A value
may be awaited as well.
"""

from __future__ import annotations

import ast
import asyncio
import asyncio.runners
import asyncio.tasks
import inspect
from asyncio import events
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from .awaiting import awaited_calls

DEFERRED, AWAITABLE = "__deferred__", "__awaitable__"
"""The names of the functions that a marked program calls."""


def marked(tree: ast.Module, code: str) -> ast.Module:
    """Return a program in which the calls that are awaited are marked; the lines stay what they are."""
    if "await" not in code and "asyncio" not in code:
        return tree
    return _Marker({id(call) for call in awaited_calls(tree)}).visit(tree)


class _Marker(ast.NodeTransformer):
    def __init__(self, awaited: set[int]) -> None:
        self._awaited = awaited

    def visit_Call(self, node: ast.Call) -> ast.Call:
        awaited = id(node) in self._awaited
        self.generic_visit(node)
        if awaited:
            node.func = _call_of(DEFERRED, node.func)
        return node

    def visit_Await(self, node: ast.Await) -> ast.Await:
        self.generic_visit(node)
        node.value = _call_of(AWAITABLE, node.value)
        return node


def _call_of(name: str, value: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), value)
    return ast.copy_location(ast.Call(function, [value], []), value)


def awaitable(value: Any) -> Any:
    """Return an awaitable of `value`: the value itself, or one that returns it at once."""
    return value if inspect.isawaitable(value) else _ready(value)


async def _ready(value: Any) -> Any:
    return value


def coroutine_of(value: Any) -> Coroutine[Any, Any, Any]:
    """Return a coroutine with the result of awaiting `value`."""
    return value if asyncio.iscoroutine(value) else _awaited(value)


async def _awaited(value: Any) -> Any:
    return await awaitable(value)


def install() -> None:
    """Patch asyncio to accept values where it accepts awaitables."""
    tasks: Any = asyncio.tasks
    if tasks.ensure_future is ensure_future:
        return
    for name in ("gather", "shield", "wait_for", "as_completed"):
        taking = _TAKING[name](getattr(tasks, name))
        for module in (asyncio, tasks):
            setattr(module, name, taking)
    asyncio.ensure_future = tasks.ensure_future = ensure_future
    asyncio.run = asyncio.runners.run = run_in_loop


_ensure_future, _run = asyncio.ensure_future, asyncio.run


def ensure_future(value: Any, *, loop: Any = None) -> Any:
    """Return a future for an awaitable, or for a value."""
    return _ensure_future(awaitable(value), loop=loop)


def run_in_loop(main: Any, **options: Any) -> Any:
    """Run a coroutine to its end, also where a loop runs already, which waits meanwhile."""
    running = events._get_running_loop()
    events._set_running_loop(None)
    try:
        return _run(coroutine_of(main), **options)
    finally:
        events._set_running_loop(running)


async def _later(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function once a loop runs, as in `asyncio.run(asyncio.gather(...))`."""
    return await function(*args, **options)


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    def taking(value: Any, *args: Any, **options: Any) -> Any:
        if events._get_running_loop() is None:
            return _later(taking, value, *args, **options)
        return function(awaitable(value), *args, **options)

    return taking


def _all(function: Callable[..., Any]) -> Callable[..., Any]:
    def taking(*values: Any, **options: Any) -> Any:
        if events._get_running_loop() is None:
            return _later(taking, *values, **options)
        return function(*map(awaitable, values), **options)

    return taking


def _awaiting_each(function: Callable[..., Any]) -> Callable[..., Any]:
    def taking(values: Iterable[Any], **options: Any) -> Any:
        return function([awaitable(value) for value in values], **options)

    return taking


_TAKING = {"gather": _all, "shield": _first, "wait_for": _first, "as_completed": _awaiting_each}
