"""Observers: async functions that are called at an event, and change nothing.

One `Hook` wraps one function; `Observers` is the table of one object, built when hooks change and never per call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Generic, ParamSpec, TypeAlias, cast, overload
from weakref import WeakKeyDictionary

from toolcrib import schema
from toolcrib.errors import MissingProvided, UnregisteredHookError, exception_of
from toolcrib.hooks._events import HookType
from toolcrib.hooks._inject import ambient_context, supply, wanted
from toolcrib.hooks._parameters import refuse_misspelt_options, require_event
from toolcrib.registry import Registry
from toolcrib.schema import RunContext

P = ParamSpec("P")
AsyncHook: TypeAlias = Callable[P, Awaitable[None]]
_NOTHING: Mapping[str, Any] = {}


class HookRaised(Exception):
    """Carries an observer's exception `error` past the code that watches the tool's own; callers unwrap it."""

    def __init__(self, hook: str, error: Exception) -> None:
        super().__init__(hook, error)
        self.hook, self.error = hook, error


class Hook(Generic[P]):
    """An observer: an async function, the events it is for, and the tags that narrow them.

    Arguments the function does not declare are left out, so a hook names only what it needs.

    Raises:
        TypeError: The function is not async, does not accept a fixed argument, or requires what an event does not give.
    """

    __slots__ = ("_locks", "_spec", "fixed", "fn", "locked", "name", "tags", "types")

    def __init__(
        self,
        fn: AsyncHook[P],
        types: Iterable[HookType],
        *,
        tags: Iterable[str] | None = None,
        lock: bool = False,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        name = getattr(fn, "__name__", type(fn).__name__)
        if not iscoroutinefunction(fn) and not iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004 -- asks for the kind, not whether
            raise TypeError(f"the hook `{name}` must be an async function; write `async def {name}(...)`")
        self.name, self.fn, self.types = name, fn, frozenset(types)
        self.tags = None if tags is None else tag_set(tags, f"the hook `{name}`")
        self.fixed = dict(fixed or {})
        self._spec = schema.ToolSpec.from_function(fn, name=name, fixed=frozenset(self.fixed))
        unknown = [key for key in self.fixed if not self._spec.accepts(key)]
        if unknown:
            raise TypeError(
                f"the hook `{name}` does not accept the fixed argument `{unknown[0]}`; remove it or declare it"
            )
        for event in self.types:
            self.require(event)
        self.locked = lock
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] | None = (
            WeakKeyDictionary() if lock else None
        )

    @property
    def lock(self) -> asyncio.Lock | None:
        """The lock that serializes this hook in the running event loop, if it has one."""
        if self._locks is None:
            return None
        loop = asyncio.get_running_loop()
        lock = self._locks.get(loop)
        if lock is None:
            for closed in [other for other in self._locks if other.is_closed()]:  # a lock may hold its loop
                del self._locks[closed]
            lock = self._locks[loop] = asyncio.Lock()
        return lock

    def require(self, event: HookType, observed: schema.ToolSpec | None = None) -> None:
        """Raise TypeError when the function requires what `event`, of the `observed` tool if any, does not give."""
        require_event(self.name, self.fn, self.fixed, event, observed)

    def admits(self, tags: frozenset[str]) -> bool:
        """Return whether an object with these tags is one the hook is for: no tags of its own, or one in common."""
        return self.tags is None or not self.tags.isdisjoint(tags)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call the hook as it is called at its event: extras left out, fixed arguments merged."""
        await self.invoke(args, kwargs)

    async def invoke(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], ctx: RunContext[Any] | None = None
    ) -> None:
        """Call the function with what it declares of `args`, `kwargs` and what the run supplies.

        Raises:
            MissingProvided: It declares something that the run does not supply.
        """
        values, _ = self._spec.bind_host(args, kwargs)
        for key, value in self.fixed.items():
            values.setdefault(key, value)
        injected = self._spec.injected
        if injected and (lacking := supply(injected, values, ctx if ctx is not None else ambient_context())):
            raise MissingProvided(self.name, lacking, wanted(injected[lacking]))
        positional, keywords = self._spec.split(values)
        lock = self.lock
        if lock is None:
            await self.fn(*positional, **keywords)  # pyright: ignore[reportCallIssue] -- bound against the function's own signature
            return
        async with lock:
            await self.fn(*positional, **keywords)  # pyright: ignore[reportCallIssue] -- bound against the function's own signature

    def __repr__(self) -> str:
        return f"<Hook {self.name} for {', '.join(sorted(self.types))}>"


def tag_set(tags: Iterable[str] | None, who: str) -> frozenset[str]:
    """Return the tags of somebody as a set; raises TypeError for a text, which is a series of letters."""
    if isinstance(tags, str):
        raise TypeError(f"{who}: tags must be a list of words, not the text {tags!r}; write tags=[{tags!r}]")
    words = tags if isinstance(tags, Iterable) else (tags,) if tags else ()
    found = frozenset[Any](words)
    if not all(isinstance(word, str) for word in found):
        raise TypeError(f"{who}: tags must be a list of words, as in tags=['reads'], and not {tags!r:.80}")
    return found


HookRegistry: Registry[Hook[Any]] = Registry(UnregisteredHookError)
"""The registered hooks, by name."""


def hook(
    *types: HookType | Iterable[HookType],
    tags: Iterable[str] | None = None,
    lock: bool = False,
    replace: bool = False,
    **fixed: Any,
) -> Callable[[AsyncHook[P]], Hook[P]]:
    """Register an async function for one or several events, of every object or of those with one of `tags`.

    Args:
        types: The events, each a member of a hook enum; a list of them is taken too.
        tags: Narrow it to objects that have at least one of these tags.
        lock: Run the hook one call at a time.
        replace: Take the place of a hook of the same name.
        fixed: Arguments that every call of the hook gets.

    Raises:
        TypeError: An event is not of a hook enum; or the function is not async, does not accept a fixed argument, or
            requires what an event does not give.
        ValueError: A hook of that name is registered already.
    """
    events = tuple(_flatten(types))
    if not events:
        raise TypeError("name at least one event, as in `@hook(ToolHook.AFTER_INVOKE)`")

    def register(fn: AsyncHook[P]) -> Hook[P]:
        _refuse_misspelt("@hook", fn, fixed, "tags", "lock", "replace")
        observer = Hook(fn, events, tags=tags, lock=lock, fixed=fixed)
        HookRegistry.register(observer.name, cast("Hook[Any]", observer), replace=replace)
        return observer

    return register


def _refuse_misspelt(who: str, fn: Callable[..., Any], fixed: Mapping[str, Any], *options: str) -> None:
    if not isinstance(fn, Hook):
        refuse_misspelt_options(who, fn, fixed, options, "give the function a parameter `{name}`")


def _flatten(types: Iterable[object]) -> Iterable[HookType]:
    for item in types:
        if isinstance(item, HookType):
            yield item
        elif isinstance(item, Iterable) and not isinstance(item, str):
            yield from _flatten(cast("Iterable[object]", item))
        else:  # registered all the same, it would never be called
            raise TypeError(
                f"{item!r} is not an event; name a member of a hook enum, as in `@hook(ToolHook.AFTER_INVOKE)`"
            )


class Observers:
    """The observers of one object: its own, then the global ones that its tags admit.

    Args:
        tags: The tags of the object.
        observed: The spec of the object, when it is a tool.
    """

    __slots__ = ("_observed", "_own", "_table", "_version", "tags")

    def __init__(self, tags: frozenset[str] = frozenset(), observed: schema.ToolSpec | None = None) -> None:
        self._observed = observed
        self._own: tuple[tuple[HookType, Hook[Any]], ...] = ()
        self._table: dict[HookType, tuple[Hook[Any], ...]] = {}
        self._version = -1
        self.tags = tags

    def add(self, event: HookType, observer: Hook[Any]) -> None:
        """Call `observer` at `event` of this object; raises TypeError when it requires what the event does not give."""
        observer.require(event, self._observed)
        self._own = (*self._own, (event, observer))
        self._version = -1

    @property
    def hooks(self) -> tuple[Hook[Any], ...]:
        """The hooks attached to this object itself, each once, in order."""
        return tuple(dict.fromkeys(observer for _, observer in self._own))

    @property
    def entries(self) -> tuple[tuple[HookType, Hook[Any]], ...]:
        """The hooks attached to this object, each with its event; another tuple after each change."""
        return self._own

    def adopt(self, other: Observers) -> None:
        """Add the other object's own hooks to this one's."""
        self._own = (*self._own, *other._own)
        self._version = -1

    def table(self) -> dict[HookType, tuple[Hook[Any], ...]]:
        """Return the hooks by event; empty without one. Rebuilt only when a hook was added or removed."""
        if self._version != HookRegistry.version:
            self._table = self._build()
            self._version = HookRegistry.version
        return self._table

    def _build(self) -> dict[HookType, tuple[Hook[Any], ...]]:
        found: dict[HookType, dict[Any, Hook[Any]]] = {}  # by function, so that one attached twice is called once
        for event, observer in self._own:
            found.setdefault(event, {}).setdefault(observer.fn, observer)
        for observer in HookRegistry:
            if observer.admits(self.tags):
                for event in observer.types:
                    found.setdefault(event, {}).setdefault(observer.fn, observer)
        return {event: tuple(hooks.values()) for event, hooks in found.items()}


async def fire(
    hooks: tuple[Hook[Any], ...],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] = _NOTHING,
    ctx: RunContext[Any] | None = None,
) -> None:
    """Call `hooks` in order; an exception comes out as `HookRaised`, so that it is not taken for the tool's."""
    for observer in hooks:
        try:
            await observer.invoke(args, kwargs, ctx)
        except BaseException as error:  # an observer is the user's code: its error belongs to the host
            raise HookRaised(observer.name, exception_of(error)) from error


class Observed:
    """An object with observers; subclasses name its events with `HookMethod`."""

    __slots__ = ()

    @property
    def observers(self) -> Observers:
        """The table of this object's observers."""
        raise NotImplementedError


class HookMethod:
    """Makes `@thing.before_x` attach a hook for one event; used bare or with `lock=` and fixed arguments."""

    __slots__ = ("event",)

    def __init__(self, event: HookType) -> None:
        self.event = event

    @overload
    def __get__(self, thing: None, owner: type) -> HookMethod: ...
    @overload
    def __get__(self, thing: Observed, owner: type) -> Attach: ...
    def __get__(self, thing: Observed | None, owner: type) -> HookMethod | Attach:
        return self if thing is None else Attach(thing, self.event)


class Attach:
    """A decorator that attaches a hook to one object, for one event: `thing.before_x`."""

    __slots__ = ("_event", "_thing")

    def __init__(self, thing: Observed, event: HookType) -> None:
        self._thing, self._event = thing, event

    @overload
    def __call__(self, fn: Hook[P] | AsyncHook[P], /) -> Hook[P]: ...
    @overload
    def __call__(self, /, *, lock: bool = False, **fixed: Any) -> Callable[[Hook[P] | AsyncHook[P]], Hook[P]]: ...
    def __call__(self, fn: Any = None, /, *, lock: bool = False, **fixed: Any) -> Any:
        def attach(target: Any) -> Hook[Any]:
            _refuse_misspelt(f"@{self._event.value}", target, fixed, "lock")
            observer: Hook[Any] = (
                cast("Hook[Any]", target)
                if isinstance(target, Hook)
                else Hook(target, (self._event,), lock=lock, fixed=fixed)
            )
            self._thing.observers.add(self._event, observer)
            return observer

        return attach if fn is None else attach(fn)
