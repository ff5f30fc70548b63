"""Context of an agent between turns: a queue of the latest items, and a pool of items by id."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from toolcrib._numbers import count_text, require_number
from toolcrib.calls import StoredFields, versioned
from toolcrib.errors import closest, explain_options
from toolcrib.hooks import (
    ContextPoolHook,
    ContextQueueHook,
    HookMethod,
    HookType,
    Observed,
    Observers,
    tag_set,
)
from toolcrib.schema import Injectable
from toolcrib.turns._arguments import pack
from toolcrib.turns._binding import fire_event

T = TypeVar("T", default=Any)


@explain_options()
@dataclass(frozen=True)  # no slots: with them Python 3.11 cannot make a `ContextItem[str](...)`
class ContextItem(Generic[T]):
    """Something worth remembering.

    Attributes:
        content: The thing itself; JSON values, if it is to be written down.
        description: A line about it; the pool's catalogue shows it.
        id: Names it in the pool; an item without one is for the queue.
    """

    content: T
    description: str | None = None
    id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON shapes; raises NotPortableError for content without a JSON form."""
        owner = f"the context item `{self.id}`" if self.id else "a context item"
        content = pack(owner, "its content", self.content)
        return versioned("ContextItem", {"content": content, "description": self.description, "id": self.id})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the item that `to_dict` described; its content is JSON values."""
        return cls(StoredFields(cls, data)["content"], data.get("description"), data.get("id"))


class _Store(Injectable, Observed):
    """The common part of queue and pool: a limit, tags, observers, and copies of the items."""

    __slots__ = ("_limit", "_observers")

    def __init__(self, limit: int | None = None, tags: Iterable[str] | None = None) -> None:
        require_number(type(self).__name__, "limit", limit, least=1)
        self._limit = limit
        self._observers = Observers(tag_set(tags, type(self).__name__))
        self.replace(())

    @property
    def limit(self) -> int | None:
        """The most items it holds; None for any number."""
        return self._limit

    @property
    def tags(self) -> frozenset[str]:
        """The words by which global hooks choose."""
        return self._observers.tags

    @property
    def observers(self) -> Observers:
        """The table of its observers."""
        return self._observers

    @property
    @abstractmethod
    def items(self) -> list[ContextItem[Any]]:
        """The items, oldest first."""

    @abstractmethod
    def replace(self, items: Iterable[ContextItem[Any]]) -> None:
        """Hold these items from now on, without calling hooks; for bringing a copy up to date."""

    def branch(self, limit: int | None = None) -> Self:
        """Return a copy with the same items, hooks and tags, which goes its own way from now on.

        Args:
            limit: The copy's own limit; this one's when None.
        """
        context = type(self)(self._limit if limit is None else limit, self.tags)
        context._observers.adopt(self._observers)
        context.replace(self.items)
        return context

    def to_dict(self) -> dict[str, Any]:
        """Return limit, tags and items as JSON shapes; hooks are left out."""
        items = [item.to_dict() for item in self]
        return versioned(type(self), {"limit": self._limit, "tags": sorted(self.tags), "items": items})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the context that `to_dict` described."""
        data = StoredFields(cls, data)
        context = cls(data.get("limit"), data.get("tags"))
        context.replace(ContextItem.from_dict(item) for item in data["items"])
        return context

    def _latest(self, items: Iterable[ContextItem[Any]]) -> Iterable[ContextItem[Any]]:
        return items if self._limit is None else list(items)[-self._limit :]

    async def _fire(self, event: HookType, *about: Any) -> None:
        await fire_event(self._observers.table(), event, self, *about)

    def __iter__(self) -> Iterator[ContextItem[Any]]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return True  # an empty one is still one: `queue or other` must not drop it

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {count_text(len(self.items), 'item')}>"


@explain_options()
class ContextQueue(_Store):
    """The latest items, in order; the oldest leaves when there are more than `limit`.

    A tool or hook with a parameter of this type is given the running agent's.
    """

    __slots__ = ("_items",)

    before_append = HookMethod(ContextQueueHook.BEFORE_APPEND)
    after_append = HookMethod(ContextQueueHook.AFTER_APPEND)
    before_clear = HookMethod(ContextQueueHook.BEFORE_CLEAR)
    after_clear = HookMethod(ContextQueueHook.AFTER_CLEAR)
    on_evict = HookMethod(ContextQueueHook.ON_EVICT)

    @property
    def items(self) -> list[ContextItem[Any]]:
        return list(self._items)

    async def append(self, *items: ContextItem[Any]) -> None:
        """Add items at the end, in order.

        Raises:
            TypeError: One is not a `ContextItem`; nothing was added.
        """
        for item in items:
            _require_item(item)
        await self._fire(ContextQueueHook.BEFORE_APPEND, items)
        self._items.extend(items)
        evicted: list[ContextItem[Any]] = []
        while self._limit is not None and len(self._items) > self._limit:
            evicted.append(self._items.popleft())
        for item in evicted:
            await self._fire(ContextQueueHook.ON_EVICT, item)
        await self._fire(ContextQueueHook.AFTER_APPEND, items)

    async def clear(self) -> None:
        """Remove every item."""
        await self._fire(ContextQueueHook.BEFORE_CLEAR, self.items)
        self._items.clear()
        await self._fire(ContextQueueHook.AFTER_CLEAR)

    def replace(self, items: Iterable[ContextItem[Any]]) -> None:
        self._items = deque(self._latest(items))
        for item in self._items:
            _require_item(item)

    def history(self, last: int | None = None) -> str:
        """Return the contents as text for a prompt, an item to a line, or only those of the `last` items."""
        require_number("history", "last", last, least=0)
        items = self.items if last is None else self.items[max(0, len(self._items) - last) :]
        return "\n".join(item.content if isinstance(item.content, str) else repr(item.content) for item in items)

    def __len__(self) -> int:
        return len(self._items)


@explain_options()
class ContextPool(_Store):
    """Items by id, to be looked up; the one longest untouched by `add` leaves when there are more than `limit`.

    A tool or hook with a parameter of this type is given the running agent's.
    """

    __slots__ = ("_items",)

    before_add = HookMethod(ContextPoolHook.BEFORE_ADD)
    after_add = HookMethod(ContextPoolHook.AFTER_ADD)
    before_remove = HookMethod(ContextPoolHook.BEFORE_REMOVE)
    after_remove = HookMethod(ContextPoolHook.AFTER_REMOVE)
    before_clear = HookMethod(ContextPoolHook.BEFORE_CLEAR)
    after_clear = HookMethod(ContextPoolHook.AFTER_CLEAR)
    on_evict = HookMethod(ContextPoolHook.ON_EVICT)

    @property
    def items(self) -> list[ContextItem[Any]]:
        return list(self._items.values())

    async def add(self, item: ContextItem[Any]) -> None:
        """Keep an item under its id, in place of one with the same id.

        Raises:
            ValueError: It has no id or no description.
        """
        key = _key(item)
        await self._fire(ContextPoolHook.BEFORE_ADD, item)
        self._items[key] = item
        self._items.move_to_end(key)
        evicted: list[ContextItem[Any]] = []
        while self._limit is not None and len(self._items) > self._limit:
            evicted.append(self._items.popitem(last=False)[1])
        for old in evicted:
            await self._fire(ContextPoolHook.ON_EVICT, old)
        await self._fire(ContextPoolHook.AFTER_ADD, item)

    def get(self, id: str) -> ContextItem[Any]:
        """Return the item with this id; a KeyError names the ids that there are."""
        try:
            return self._items[id]
        except KeyError:
            raise KeyError(f"the pool has no item `{id}`. {closest(id, self._items)}") from None

    async def remove(self, id: str) -> None:
        """Forget the item with this id; KeyError without one."""
        item = self.get(id)
        await self._fire(ContextPoolHook.BEFORE_REMOVE, item)
        self._items.pop(id, None)
        await self._fire(ContextPoolHook.AFTER_REMOVE, item)

    async def clear(self) -> None:
        """Forget every item."""
        await self._fire(ContextPoolHook.BEFORE_CLEAR, self.items)
        self._items.clear()
        await self._fire(ContextPoolHook.AFTER_CLEAR)

    def replace(self, items: Iterable[ContextItem[Any]]) -> None:
        self._items = OrderedDict((_key(item), item) for item in self._latest(items))

    def catalogue(self) -> str:
        """Return ids and descriptions for a prompt, an item to a line: `- [id] description`."""
        return "\n".join(f"- [{item.id}] {item.description}" for item in self._items.values())

    def __contains__(self, id: object) -> bool:
        return id in self._items

    def __len__(self) -> int:
        return len(self._items)


def _require_item(item: object) -> None:
    if not isinstance(item, ContextItem):
        raise TypeError(f"a context holds ContextItem objects, not {type(item).__name__}; write ContextItem(...)")


def _key(item: ContextItem[Any]) -> str:
    _require_item(item)
    if not item.id or not item.description:
        lacking = "an id" if not item.id else "a description"
        raise ValueError(f"an item of a pool needs {lacking}: ContextItem(content, description=..., id=...)")
    return item.id
