"""Stubs of tools in a program: functions that ask the host, one by one, several at once, awaited, or value by value."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Coroutine, Generator, Iterable, Iterator, Sequence
from typing import Any, cast

from ._exchange import Exchange
from ._frames import Frame
from .export import ExportedByName
from .tables import with_tables

_RAISED_BY = "_raised_by_tool"


class Tool(ExportedByName):
    """A tool of the host's, which a program calls like any function."""

    def __init__(self, exchange: Exchange, name: str, signature: str, *, stream: bool) -> None:
        self._exchange, self._stream = exchange, stream
        self.__name__ = self.__qualname__ = name
        self.__doc__ = signature

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._stream:
            return ValueStream(self._exchange, self.__name__, args, kwargs)
        return _value(self._exchange.call_and_wait(self.__name__, args, kwargs), self.__name__)

    def __repr__(self) -> str:
        return f"<tool {self.__name__}>"


class Namespace:
    """The object `parent` of `parent.child` where there is no tool called `parent`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<tools of {self.__name__}>"


class ValueStream:
    """The values of a streaming tool, one by one; for `for`, `async for` and `list`."""

    def __init__(self, exchange: Exchange, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._over = True  # should the call fail
        self._exchange, self._name = exchange, name
        self._call = exchange.call(name, args, kwargs, wait=False)
        self._over = False

    def __iter__(self) -> ValueStream:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        frame = self._exchange.next(self._call)
        if self._ends(frame):
            raise StopIteration
        return _value_of(frame)

    def __aiter__(self) -> ValueStream:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        frame = await self._exchange.next_async(self._call)
        if self._ends(frame):
            raise StopAsyncIteration
        return _value_of(frame)

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        return self._all().__await__()

    async def _all(self) -> list[Any]:
        return [value async for value in self]

    def _ends(self, frame: Frame) -> bool:
        if frame["t"] == "item":
            return False
        self._over = True
        _value(frame, self._name)
        return True

    def close(self) -> None:
        """Stop the stream."""
        if not self._over:
            self._over = True
            self._exchange.drop(self._call)

    async def aclose(self) -> None:
        """Stop the stream."""
        self.close()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<values of {self._name}>"


class UnawaitedCall(Coroutine[Any, Any, Any]):
    """A call that begins when it is awaited."""

    def __init__(self, stubs: Stubs, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], line: int) -> None:
        self._stubs, self._args, self._kwargs = stubs, args, kwargs
        self.line = line
        self._begun: Coroutine[Any, Any, Any] | None = None
        self.__name__ = self.__qualname__ = name
        stubs.unawaited[id(self)] = self

    async def _run(self) -> Any:
        exchange, name = self._stubs.exchange, self.__name__
        if name in self._stubs.streams:
            return await ValueStream(exchange, name, self._args, self._kwargs)
        return _value(await exchange.call_async(name, self._args, self._kwargs, self.line), name)

    def _coroutine(self) -> Coroutine[Any, Any, Any]:
        if self._begun is None:
            self._stubs.unawaited.pop(id(self), None)
            self._begun = self._run()
        return self._begun

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine().__await__()

    def send(self, value: Any, /) -> Any:
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine().throw(*error)

    def close(self) -> None:
        if self._begun is not None:
            self._begun.close()

    def __getitem__(self, key: Any, /) -> Any:
        raise TypeError(self._unawaited())

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(self._unawaited())

    def _unawaited(self) -> str:
        name = self.__name__
        return f"this call of `{name}` is awaited in another place, so it has no value yet: write `await {name}(...)`"

    def __repr__(self) -> str:
        return f"<call of {self.__name__} that was not awaited>"


class Stubs:
    """The stubs of a program's tools.

    Attributes:
        exchange: The exchange with the host.
        streams: The names of the streaming tools.
        unawaited: Calls that were made to be awaited, and were not yet.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.streams: frozenset[str] = frozenset()
        self.unawaited: dict[int, UnawaitedCall] = {}

    def names(self, tools: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the names that a program is given: its tools, `parent.child` for `parent__child`, `parallel`."""
        named: dict[str, Any] = {"parallel": self.parallel}
        self.streams = frozenset(name for name, about in tools.items() if about["stream"])
        for name, about in tools.items():
            named[name] = Tool(self.exchange, name, about["signature"], stream=about["stream"])
        for name in tools:
            parent, *children = name.split("__")
            if parent and all(children) and children:
                holder = named.setdefault(parent, Namespace(parent))
                for depth, child in enumerate(children, 2):
                    below = "__".join([parent, *children[: depth - 1]])
                    if child not in vars(holder):
                        setattr(holder, child, named.get(below) or Namespace(below))
                    holder = getattr(holder, child)
        return named

    def parallel(self, *calls: Any) -> list[Any]:
        """Run calls at once, and return their results in order: `parallel((tool, arg, ...), (tool, arg, ...))`.

        For keywords, give `functools.partial(tool, name=value)`, alone or first in the tuple. All calls come to their
        end, and then the first failure is raised.
        """
        if len(calls) == 1 and isinstance(calls[0], list | Iterator):
            calls = tuple(cast("Iterable[Any]", calls[0]))
        begun = [self._begin(call) for call in calls]
        results: list[Any] = []
        failed: BaseException | None = None
        for name, call in begun:
            try:
                results.append(self._end(name, call))
            except Exception as error:  # of the tool's, raised when all have ended
                failed = failed or error
        if failed is not None:
            raise failed
        return results

    def _begin(self, call: Any) -> tuple[Tool, Any]:
        parts: list[Any] = list(cast("Sequence[Any]", call)) if isinstance(call, tuple | list) else [call]
        tool, args = parts[0] if parts else None, parts[1:]
        kwargs: dict[str, Any] = {}
        while isinstance(tool, functools.partial):
            args, kwargs, tool = [*tool.args, *args], {**tool.keywords, **kwargs}, cast("Any", tool.func)
        if isinstance(tool, UnawaitedCall):
            raise TypeError("parallel takes (tool, argument, ...) and not tool(argument): leave the call to it")
        if not isinstance(tool, Tool):
            raise TypeError(
                f"parallel takes tuples that begin with a tool, such as (tool, argument), not {tool!r:.100}"
            )
        if tool.__name__ in self.streams:
            return tool, tool(*args, **kwargs)
        return tool, self.exchange.call(tool.__name__, tuple(args), kwargs, wait=False)

    def _end(self, tool: Tool, call: Any) -> Any:
        if isinstance(call, ValueStream):
            return list(call)
        return _value(self.exchange.answer(call), tool.__name__)

    def deferred(self, function: Any) -> Any:
        """Return a function for calls whose value is awaited: a tool's call begins when it is."""
        if isinstance(function, Tool):
            return functools.partial(self._defer, function)
        if isinstance(function, functools.partial) and isinstance(function.func, Tool):
            partial = cast("functools.partial[Any]", function)
            return functools.partial(self._defer, function.func, *partial.args, **partial.keywords)
        if function is builtins.map:
            return self._map
        return cast("Any", function)

    def _map(self, function: Any, *values: Any) -> Any:
        return map(self.deferred(function), *values)

    def _defer(self, tool: Tool, /, *args: Any, **kwargs: Any) -> UnawaitedCall:
        frame = inspect.currentframe()
        line = frame.f_back.f_lineno if frame is not None and frame.f_back is not None else 0
        return UnawaitedCall(self, tool.__name__, args, kwargs, line)

    def take_unawaited(self) -> list[str]:
        """Return a sentence for each call that was never awaited, and forget these calls."""
        calls, self.unawaited = self.unawaited, {}
        return [f"`{call.__name__}` (line {call.line}): never awaited, so it did not run" for call in calls.values()]


def raised_by(error: BaseException) -> str | None:
    """Return the tool that raised this error; None when no tool raised it."""
    name = getattr(error, _RAISED_BY, None)
    return name if isinstance(name, str) else None


def _value(frame: Frame, name: str) -> Any:
    if "err" not in frame:
        return _value_of(frame)
    error: BaseException = getattr(builtins, frame["err"]["type"])(frame["err"]["message"])  # the host chose one it has
    setattr(error, _RAISED_BY, name)
    raise error


def _value_of(frame: Frame) -> Any:
    """Return the value of a frame, with the tables that came beside it."""
    tables = frame.get("blobs", ())
    if tables is None:
        raise MemoryError
    return with_tables(frame.get("v"), tables) if tables else frame.get("v")
