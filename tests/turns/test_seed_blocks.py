"""The tools, turns and agents of the documents that specify this way in: each of their uses, with names of our own.

The names imported from `toolcrib` are all that a program written for them has to change.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolcrib import Agent, ToolHook, Turn, hook, tool
from toolcrib.errors import (
    CompletionCheckReturnError,
    SafeExecutionError,
    TurnTimeoutError,
    UnregisteredToolError,
    WrongRunMethodError,
)
from toolcrib.tools import ToolRegistry, ToolType
from toolcrib.turns import AgentRegistry, ContextItem, StopReason


async def collected(agent: Agent) -> list[Any]:
    return [value async for _, value in agent.run()]


# --- defining tools


async def test_a_plain_tool_and_one_with_a_lock() -> None:
    @tool()
    async def download(address: str) -> str:
        """Get a page."""
        return f"<{address}>"

    @tool(lock=True)
    async def save(path: str, text: str) -> None:
        """Put a text into a file, one call at a time."""
        order.append(f"{path} begins")
        await asyncio.sleep(0)
        order.append(f"{path} ends")

    order: list[str] = []

    assert await download("x.org") == "<x.org>"
    await asyncio.gather(save("a", "1"), save("b", "2"))

    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert (download.lock, isinstance(save.lock, asyncio.Lock)) == (None, True)


def test_sync_functions_and_unknown_fixed_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError):

        @tool()
        def download(address: str) -> str: ...

    with pytest.raises(TypeError):

        @tool(token="t")
        async def fetch(address: str) -> str: ...


async def test_a_fixed_argument_that_is_a_callable_is_asked_at_each_call(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"key": "first"}

    @tool(key=lambda: settings["key"])
    async def query(path: str, key: str) -> str:
        return f"{path}:{key}"

    turn = Turn(query, kwargs={"path": "/a"})
    settings["key"] = "second"

    assert await turn.returning() == "/a:second"
    with caplog.at_level(logging.WARNING):
        assert await Turn(query, kwargs={"path": "/a", "key": "mine"}).returning() == "/a:mine"
    assert "key" in caplog.text


async def test_extra_arguments_are_ignored_and_missing_ones_are_not() -> None:
    @tool()
    async def shout(word: str) -> str:
        return word.upper()

    assert await shout("a", "b", volume=11) == "A"
    assert await Turn(shout, kwargs={"word": "a", "volume": 11}).returning() == "A"
    with pytest.raises(TypeError):
        await Turn(shout).returning()


# --- one value or many


async def test_one_value_is_returned_and_many_are_yielded(tmp_path: Any) -> None:
    path = tmp_path / "lines"
    path.write_text("one \ntwo \n")

    @tool()
    async def shorten(text: str) -> str:
        return text[:3]

    @tool()
    async def read_lines(path: Any) -> AsyncIterator[str]:
        for line in path.read_text().splitlines():
            yield line.strip()

    assert await Turn("shorten", kwargs={"text": "abcdef"}).returning() == "abc"
    assert [line async for line in Turn("read_lines", kwargs={"path": path}).yielding()] == ["one", "two"]
    with pytest.raises(WrongRunMethodError):
        await Turn("read_lines", kwargs={"path": path}).returning()
    with pytest.raises(WrongRunMethodError):
        await anext(Turn("shorten", kwargs={"text": "a"}).yielding())


# --- what comes back


async def test_turns_are_queued_items_are_kept_and_the_rest_is_given() -> None:
    @tool()
    async def choose(question: str) -> Turn[Any]:
        return Turn(answer if question.endswith("!") else research, kwargs={"question": question})

    @tool()
    async def research(question: str) -> AsyncIterator[Any]:
        yield ContextItem(content=f"read about {question}")
        yield ContextItem(content=[1, 2], description="numbers", id="numbers")
        yield "reading"
        yield Turn(choose, kwargs={"question": question + "!"})

    @tool()
    async def answer(question: str) -> str:
        return f"answer to {question}"

    agent = Agent("reader", "Reads", [choose, research, answer])
    await agent.put(Turn("choose", kwargs={"question": "why"}))

    assert await collected(agent) == ["reading", "answer to why!"]
    assert [item.content for item in agent.context_queue.items] == ["read about why"]
    assert agent.context_pool.get("numbers").content == [1, 2]


# --- hooks and tags


async def test_hooks_of_one_tool() -> None:
    seen: list[Any] = []

    @tool()
    async def halve(n: int) -> float:
        return 10 / n

    @halve.before_invoke
    async def log_call(n: int) -> None:
        seen.append(n)

    @halve.after_invoke
    async def log_result(result: float) -> None:
        seen.append(result)

    @halve.on_error
    async def log_error(exc: Exception) -> None:
        seen.append(type(exc))

    await Turn(halve, kwargs={"n": 5}).returning()
    with pytest.raises(ZeroDivisionError):
        await Turn(halve, kwargs={"n": 0}).returning()

    assert seen == [5, 2.0, 0, ZeroDivisionError]


async def test_global_hooks_by_tag_and_for_all() -> None:
    seen: list[Any] = []

    @tool(tags=["disk", "store"])
    async def write(record: dict[str, int]) -> str:
        return "written"

    @tool(tags=["disk"])
    async def read(path: str) -> str:
        return "read"

    @tool()
    async def think(n: int) -> str:
        return "thought"

    @hook(ToolHook.AFTER_INVOKE, tags={"disk"})
    async def log_disk(result: Any) -> None:
        seen.append(("disk", result))

    @hook(ToolHook.AFTER_INVOKE)
    async def log_all(result: Any) -> None:
        seen.append(("all", result))

    @think.after_invoke
    async def log_thought(result: Any) -> None:
        seen.append(("own", result))

    for turn in (Turn(write, args=[{}]), Turn(read, args=["p"]), Turn(think, args=[1])):
        await turn.returning()

    told = sorted(seen)
    assert told == [
        ("all", "read"),
        ("all", "thought"),
        ("all", "written"),
        ("disk", "read"),
        ("disk", "written"),
        ("own", "thought"),
    ]


# --- subtools, registry, metadata


async def test_subtools_by_their_scoped_name() -> None:
    ran: list[str] = []

    @tool()
    async def accounts() -> None:
        """All about accounts."""

    @accounts.subtool()
    async def open_one(owner: str) -> None:
        """Open an account."""
        ran.append(owner)

    @accounts.subtool(lock=True, tags=["danger"])
    async def close_one(owner: str) -> None:
        """Close an account."""

    await Turn("accounts.open_one", kwargs={"owner": "ada"}).returning()

    assert (ran, ToolRegistry.get("accounts.close_one")) == (["ada"], close_one)
    assert accounts.doc_tree() == {
        "name": "accounts",
        "description": "All about accounts.",
        "subtools": [
            {"name": "open_one", "description": "Open an account.", "subtools": []},
            {"name": "close_one", "description": "Close an account.", "subtools": []},
        ],
    }
    assert (open_one.metadata.name, ToolRegistry.definitions()) == ("open_one", [accounts.doc_tree()])


def test_the_registry_of_tools() -> None:
    @tool()
    async def download(address: str) -> str: ...

    assert ToolRegistry.get("download") is download
    assert ToolRegistry.all() == [download]
    with pytest.raises(UnregisteredToolError):
        ToolRegistry.get("upload")
    with pytest.raises(ValueError, match="download"):
        tool()(download.fn)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_metadata_has_name_description_and_times() -> None:
    @tool()
    async def download(address: str) -> str:
        """Get a page."""
        return ""

    assert (download.metadata.name, download.metadata.description) == ("download", "Get a page.")
    assert (download.metadata.start_time, download.metadata.end_time) == (None, None)

    await Turn(download, args=["x"]).returning()

    said = download.metadata.dict()
    assert download.metadata.start_time is not None
    assert said["start_time"] == download.metadata.start_time.isoformat()
    assert isinstance(said["end_time"], str)


def test_the_shape_of_a_tool() -> None:
    @tool(tags=["a"], lock=True)
    async def download(address: str) -> str: ...

    assert callable(download.fn)
    assert (download.hooks, download.tags) == ([], frozenset({"a"}))
    assert download.lock is not None


# --- design decisions


async def test_a_turn_runs_once_at_a_time_and_its_time_is_bounded() -> None:
    @tool()
    async def dawdle() -> None:
        with pytest.raises(SafeExecutionError):
            await turn.returning()
        await asyncio.Event().wait()

    turn = Turn(dawdle)
    assert turn.timeout == 60
    turn.timeout = 0.01

    with pytest.raises(TurnTimeoutError):
        await turn.returning()

    assert (turn.stop_reason, turn.end_time is not None) == (StopReason.TIMEOUT, True)


async def test_a_completion_check_ends_the_loop() -> None:
    @tool(type=ToolType.COMPLETION_CHECK)
    async def done() -> bool:
        return True

    @tool()
    async def work() -> str:
        return "more"

    agent = Agent("worker", "Works", [done, work])
    await agent.put(Turn("done"))
    await agent.put(Turn("work"))

    assert (await collected(agent), len(agent.turns)) == ([True], 1)


@pytest.mark.parametrize("shape", ["stream", "no annotation"])
def test_a_completion_check_is_checked_where_it_is_declared(shape: str) -> None:
    async def streams() -> AsyncIterator[bool]:
        yield True

    async def says_nothing():  # type: ignore[no-untyped-def]
        return True

    with pytest.raises(TypeError):
        tool(type=ToolType.COMPLETION_CHECK)(streams if shape == "stream" else says_nothing)


async def test_a_completion_check_that_lies_is_found_out() -> None:
    @tool(type=ToolType.COMPLETION_CHECK)
    async def done() -> bool:
        return "yes"  # pyright: ignore[reportReturnType]

    agent = Agent("worker", "Works", [done])
    await agent.put(Turn("done"))

    with pytest.raises(CompletionCheckReturnError):
        await collected(agent)


async def test_turns_and_agents_are_written_down_and_restored() -> None:
    @tool()
    async def work(n: int) -> int:
        return n

    agent = Agent("worker", "Works", [work])
    await agent.put(Turn("work", kwargs={"n": 1}, metadata={"from": "me"}))
    data = agent.to_dict()

    restored = Agent.from_dict(data)

    assert [data["name"], data["description"], data["tool_names"]] == ["worker", "Works", ["work"]]
    assert data["queue"][0]["kwargs"] == {"n": 1}
    assert Turn.from_dict(data["queue"][0]).metadata == {"from": "me"}
    assert AgentRegistry.get("worker") is restored
    assert await collected(restored) == [1]
