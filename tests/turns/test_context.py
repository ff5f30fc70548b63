"""The queue and the pool of context items."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import NotPortableError
from toolcrib.hooks import ContextPoolHook, ContextQueueHook, hook
from toolcrib.turns import ContextItem, ContextPool, ContextQueue


def contents(store: ContextQueue | ContextPool) -> list[Any]:
    return [item.content for item in store]


def entry(id: str, content: Any = None) -> ContextItem[Any]:
    return ContextItem(content if content is not None else id, f"about {id}", id)


# --- items -----------------------------------------------------------------------------------------------------------


def test_an_item_is_frozen_and_comes_back_from_json() -> None:
    item = ContextItem({"rows": [1, 2]}, "a table", "t1")

    with pytest.raises(FrozenInstanceError):
        item.content = {}  # pyright: ignore[reportAttributeAccessIssue]
    assert ContextItem.from_dict(item.to_dict()) == item


def test_the_type_of_the_content_may_be_said() -> None:
    assert ContextItem[str]("rows") == ContextItem("rows")


def test_content_without_a_json_form_is_named() -> None:
    with pytest.raises(NotPortableError, match=r"the context item `t1`.*its content has the type object"):
        entry("t1", object()).to_dict()


# --- the queue -------------------------------------------------------------------------------------------------------


async def test_the_oldest_items_leave_a_full_queue() -> None:
    queue, left = ContextQueue(limit=2), []

    @queue.on_evict
    async def note(queue: ContextQueue, item: ContextItem[Any]) -> None:
        left.append(item.content)

    await queue.append(*map(ContextItem, ["a", "b", "c", "d"]))

    assert (contents(queue), left) == (["c", "d"], ["a", "b"])


async def test_history_is_text_for_a_prompt() -> None:
    queue = ContextQueue(limit=None)
    await queue.append(ContextItem("first"), ContextItem({"n": 2}), ContextItem("third"))

    assert queue.history() == "first\n{'n': 2}\nthird"
    assert queue.history(last=1) == "third"
    assert queue.history(last=0) == ""


async def test_only_items_go_in_and_all_or_none() -> None:
    queue = ContextQueue()

    with pytest.raises(TypeError, match="not str"):
        await queue.append(ContextItem("a"), "b")  # pyright: ignore[reportArgumentType]

    assert len(queue) == 0


async def test_a_branch_goes_its_own_way() -> None:
    queue = ContextQueue(limit=3, tags=["notes"])
    await queue.append(*map(ContextItem, "abc"))

    branch = queue.branch(limit=2)
    await branch.append(ContextItem("d"))

    assert (contents(queue), contents(branch)) == (["a", "b", "c"], ["c", "d"])
    assert branch.tags == {"notes"}


async def test_the_hooks_of_a_queue() -> None:
    queue, seen = ContextQueue(), []

    @hook(ContextQueueHook.BEFORE_APPEND, ContextQueueHook.AFTER_APPEND)
    async def appended(queue: ContextQueue, items: Any) -> None:
        seen.append((len(queue), [item.content for item in items]))

    @queue.before_clear
    async def clearing(queue: ContextQueue, items: Any) -> None:
        seen.append(("before", len(items)))

    @queue.after_clear
    async def cleared(queue: ContextQueue) -> None:
        seen.append(("after", len(queue)))

    await queue.append(ContextItem("a"))
    await queue.clear()

    assert seen == [(0, ["a"]), (1, ["a"]), ("before", 1), ("after", 0)]


async def test_what_a_hook_raises_comes_out_of_append() -> None:
    queue = ContextQueue()

    @queue.before_append
    async def refuse() -> None:
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        await queue.append(ContextItem("a"))

    assert len(queue) == 0


@given(items=st.lists(st.text(max_size=3)), limit=st.none() | st.integers(1, 5))
async def test_a_queue_keeps_the_last_items_and_comes_back(items: list[str], limit: int | None) -> None:
    queue = ContextQueue(limit)
    for text in items:
        await queue.append(ContextItem(text))

    back = ContextQueue.from_dict(queue.to_dict())

    assert contents(queue) == (items if limit is None else items[-limit:])
    assert (back.to_dict(), back.limit) == (queue.to_dict(), limit)


@pytest.mark.parametrize("kind", [ContextQueue, ContextPool])
def test_limits_and_tags_are_checked(kind: Any) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        kind(limit=0)
    with pytest.raises(TypeError, match=r"tags=\['io'\]"):
        kind(tags="io")
    assert bool(kind()) is True


# --- the pool --------------------------------------------------------------------------------------------------------


async def test_items_are_looked_up_by_id() -> None:
    pool = ContextPool()
    await pool.add(entry("sales", [1, 2]))
    await pool.add(entry("staff"))

    assert pool.get("sales").content == [1, 2]
    assert ("sales" in pool, len(pool)) == (True, 2)
    assert pool.catalogue() == "- [sales] about sales\n- [staff] about staff"


async def test_an_item_takes_the_place_of_one_with_its_id() -> None:
    pool = ContextPool(limit=2)
    for item in (entry("a", 1), entry("b", 2), entry("a", 3), entry("c", 4)):
        await pool.add(item)

    assert contents(pool) == [3, 4]  # `a` was touched later than `b`


async def test_an_unknown_id_names_its_neighbours() -> None:
    pool = ContextPool()
    await pool.add(entry("sales"))

    with pytest.raises(KeyError, match="Did you mean `sales`"):
        pool.get("sale")
    with pytest.raises(KeyError):
        await pool.remove("staff")


@pytest.mark.parametrize(
    ("item", "lacking"), [(ContextItem(1, "d"), "an id"), (ContextItem(1, id="x"), "a description")]
)
async def test_an_item_without_id_or_description_is_refused(item: ContextItem[Any], lacking: str) -> None:
    with pytest.raises(ValueError, match=lacking):
        await ContextPool().add(item)


async def test_the_hooks_of_a_pool() -> None:
    pool, seen = ContextPool(limit=1, tags=["data"]), []

    @hook(list(ContextPoolHook), tags={"data"})
    async def note(pool: ContextPool, about: Any = None) -> None:
        seen.append((len(pool), getattr(about, "id", None)))

    await ContextPool().add(entry("elsewhere"))
    await pool.add(entry("a"))
    await pool.add(entry("b"))  # before, evict, after
    await pool.remove("b")
    await pool.clear()

    assert seen == [(0, "a"), (1, "a"), (1, "b"), (1, "a"), (1, "b"), (1, "b"), (0, "b"), (0, None), (0, None)]


async def test_the_method_decorators_of_a_pool() -> None:
    pool, seen = ContextPool(limit=1), []
    moments = ["before_add", "after_add", "before_remove", "after_remove", "before_clear", "after_clear", "on_evict"]
    for moment in moments:

        @getattr(pool, moment)(name=moment)
        async def note(pool: ContextPool, *, name: str) -> None:
            seen.append(name)

    await pool.add(entry("a"))
    await pool.remove("a")
    await pool.clear()

    assert seen == moments[:-1]


@given(ids=st.lists(st.sampled_from("abcdef")), limit=st.none() | st.integers(1, 4))
async def test_a_pool_keeps_what_was_touched_last_and_comes_back(ids: list[str], limit: int | None) -> None:
    pool = ContextPool(limit)
    for id in ids:
        await pool.add(entry(id))
    latest = list(dict.fromkeys(reversed(ids)))[:limit][::-1]

    back = ContextPool.from_dict(pool.to_dict())

    assert [item.id for item in pool] == latest
    assert (back.items, back.branch().items) == (pool.items, pool.items)
