"""Tools behind a search: hidden until they are found, in the run that found them, and appended to the offer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolcrib.calls import Completed, Failed, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import DuplicateNameError, UnknownTool
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool, tool_input
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset
from toolcrib.toolsets.search import SearchTools, searchable, words_of


@ez_tool
def send_email(recipient: str, body: str) -> str:
    """Send a message to somebody."""
    return f"sent to {recipient}"


@ez_tool
def getWeatherForecast(city: str) -> str:
    """Say what tomorrow is like.

    Args:
        city: Where, by postal code or name.
    """
    return f"rain in {city}"


@ez_tool(requires_approval=True)
def delete_file(path: Annotated[str, Field(description="Absolute location on the disk.")]) -> str:
    """Remove it for good."""
    return f"{path} is gone"


@ez_tool(default=False)
def format_disk() -> str:
    """Erase a whole disk."""
    return "done"


@tool_input(name="book_flight")
class BookFlight(BaseModel):
    """Reserve a seat."""

    origin: str = Field(description="The airport to leave from.")


@ez_tool
def now() -> str:
    """Say what time it is."""
    return "noon"


def crib() -> Toolset:
    return searchable([now, send_email, getWeatherForecast, delete_file, format_disk, BookFlight], keep=["now"])


async def search(pipeline: Pipeline, scope: Run, query: str, **arguments: Any) -> list[str]:
    outcome = await pipeline.run(ToolCall("search_tools", {"query": query, **arguments}), scope)
    assert isinstance(outcome, Completed)
    return [found["name"] for found in outcome.value]


def test_only_kept_tools_and_the_search_are_offered() -> None:
    assert [d.name for d in crib().definitions()] == ["now", "search_tools"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("email somebody", "send_email"),
        ("weather", "getWeatherForecast"),
        ("postal codes", "getWeatherForecast"),
        ("recipient", "send_email"),
        ("absolute location", "delete_file"),
        ("DELETE files", "delete_file"),
        ("airport", "book_flight"),
        ("origin", "book_flight"),
    ],
)
async def test_a_tool_is_found_by_its_name_its_description_and_its_parameters(query: str, first: str) -> None:
    found = await search(Pipeline(crib()), Run(), query)

    assert found[0] == first


@pytest.mark.parametrize("query", ["quantum chromodynamics", "to the", "", "?!", "erase", "noon"])
async def test_nothing_is_found_by_other_words(query: str) -> None:
    scope = Run()

    found = await search(Pipeline(crib()), scope, query)

    assert found == []
    assert scope.revealed == {}


async def test_results_say_what_a_tool_is_for() -> None:
    outcome = await Pipeline(crib()).run(ToolCall("search_tools", '{"query": "email"}'))

    assert isinstance(outcome, Completed)
    assert outcome.value == [{"name": "send_email", "description": "Send a message to somebody."}]


async def test_a_hidden_tool_cannot_be_called_before_it_was_found() -> None:
    pipeline, scope = Pipeline(crib()), Run()
    call = ToolCall("send_email", {"recipient": "ann", "body": "x"})

    before = await pipeline.run(call, scope)
    await search(pipeline, scope, "email")
    after = await pipeline.run(call, scope)

    assert isinstance(before, Failed)
    assert before.code == "not_available"
    assert isinstance(after, Completed)


async def test_what_one_run_found_stays_hidden_from_another() -> None:
    pipeline, one = Pipeline(crib()), Run()
    await search(pipeline, one, "email")

    elsewhere = await pipeline.run(ToolCall("send_email", {"recipient": "ann", "body": "x"}), Run())

    assert isinstance(elsewhere, Failed)


async def test_found_tools_are_appended_to_the_offer() -> None:
    pipeline, scope = Pipeline(crib()), Run()
    offers = [pipeline.toolset.definitions()]

    for query in ("file", "weather", "email", "weather"):
        await search(pipeline, scope, query, limit=1)
        offers.append(pipeline.toolset.definitions(revealed=scope.revealed))

    assert [d.name for d in offers[-1]] == ["now", "search_tools", "delete_file", "getWeatherForecast", "send_email"]
    for earlier, later in pairwise(offers):
        assert later[: len(earlier)] == earlier


async def test_a_run_that_names_what_is_available_may_call_what_it_found() -> None:
    pipeline, scope = Pipeline(crib()), Run(available=frozenset({"now", "search_tools"}))

    await search(pipeline, scope, "weather")
    outcome = await pipeline.run(ToolCall("getWeatherForecast", {"city": "Oslo"}), scope)

    assert isinstance(outcome, Completed)


async def test_a_found_tool_keeps_its_gates() -> None:
    pipeline, scope = Pipeline(crib()), Run()
    await search(pipeline, scope, "delete")

    outcome = await pipeline.run(ToolCall("delete_file", {"path": "/x"}), scope)

    assert isinstance(outcome, Suspended)


@pytest.mark.parametrize("copied", [lambda s: s, lambda s: outcome_from_dict(s.to_dict())], ids=["itself", "json"])
async def test_a_found_tool_that_waited_for_approval_runs_in_another_scope(
    copied: Callable[[Suspended], Suspended],
) -> None:
    pipeline, scope = Pipeline(crib()), Run()
    await search(pipeline, scope, "delete")
    waiting = await pipeline.run(ToolCall("delete_file", {"path": "/x"}), scope)
    assert isinstance(waiting, Suspended)

    outcome = await pipeline.run(copied(waiting), Run(), grant=waiting.request.grant())

    assert isinstance(outcome, Completed)


async def test_a_tool_that_is_not_available_is_not_found() -> None:
    def by_deps(ctx: RunContext[Any], entry: Any) -> bool:
        return entry.name != "send_email" or ctx.deps == "postman"

    pipeline = Pipeline(searchable(Toolset([send_email, now]).filtered(by_deps)))

    assert await search(pipeline, Run(), "email") == []
    assert await search(pipeline, Run(deps="postman"), "email") == ["send_email"]


async def test_a_prefix_around_it_is_in_the_results() -> None:
    pipeline, scope = Pipeline(crib().prefixed("my_")), Run()
    outcome = await pipeline.run(ToolCall("my_search_tools", {"query": "weather"}), scope)

    assert isinstance(outcome, Completed)
    assert outcome.value[0]["name"] == "my_getWeatherForecast"
    called = await pipeline.run(ToolCall("my_getWeatherForecast", {"city": "Oslo"}), scope)
    assert isinstance(called, Completed)


async def test_the_limit_is_kept() -> None:
    many = [ez_tool(name=f"convert_{n}")(lambda text: text) for n in range(30)]
    pipeline = Pipeline(searchable(many))

    assert await search(pipeline, Run(), "convert") == [f"convert_{n}" for n in range(5)]
    assert len(await search(pipeline, Run(), "convert", limit=20)) == 20
    too_many = await pipeline.run(ToolCall("search_tools", {"query": "convert", "limit": 21}))
    assert isinstance(too_many, Failed)


async def test_a_set_with_nothing_hidden_finds_nothing() -> None:
    assert await search(Pipeline(searchable([now], keep=["now"])), Run(), "time") == []


def test_mistakes_are_named() -> None:
    @ez_tool
    def search_tools() -> str:
        return ""

    with pytest.raises(UnknownTool, match="`naw`"):
        searchable([now], keep=["naw"])
    with pytest.raises(DuplicateNameError, match="search_tools"):
        searchable([search_tools])


class Unit(Enum):
    CELSIUS = "celsius"


class Address(BaseModel):
    street: str = Field(description="Where the letterbox is.")


class Forecast(TypedDict):
    humidity: float


@ez_tool
def typed(unit: Unit, mode: Literal["quick"], to: Address, *more: list[Address]) -> Forecast | None:
    """Do it."""


@ez_tool
def worded() -> dict[str, str]:
    """Do it.

    Returns:
        barometer (str): The pressure.
    """
    return {}


SCHEMA = {
    "type": "object",
    "properties": {"tier": {"enum": ["gold"]}, "all": {"type": "array", "items": {"enum": ["red"]}}},
}
FROM_SCHEMA = schema_tool(
    "from_schema", SCHEMA, description="Do it.", output_schema={"type": "object", "properties": {"invoice": {}}}
)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("celsius", "typed"),
        ("quick", "typed"),
        ("street", "typed"),
        ("letterbox", "typed"),
        ("humidity", "typed"),
        ("barometer", "worded"),
        ("gold", "from_schema"),
        ("red", "from_schema"),
        ("invoice", "from_schema"),
        ("what should I do with my barometer", "worded"),
        ("seat airport", "book_flight"),
    ],
)
def test_a_tool_is_found_by_the_words_of_its_types_and_its_result(query: str, name: str) -> None:
    search = SearchTools(Toolset([typed, worded, FROM_SCHEMA, BookFlight]))

    assert next(search.ranked(query)).name == name


def test_a_query_of_common_words_alone_is_searched_for_them() -> None:
    needed = ez_tool(name="need")(lambda: None)

    assert [entry.name for entry in SearchTools(Toolset([worded, needed])).ranked("what do you need")] == [
        "need",
        "worded",
    ]


def test_tools_that_are_not_known_yet_cannot_be_searched() -> None:
    class Source:
        def open_source(self, ctx: RunContext[Any]) -> Any:
            raise NotImplementedError

    with pytest.raises(ValueError, match=r"its tools are not known yet: `async with toolset.open"):
        searchable([Source()])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_weather2", ["get", "weather", "2"]),
        ("getHTTPResponse", ["get", "http", "response"]),
        ("HTTPServer", ["http", "server"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("send the emails to a class", ["send", "email", "class"]),
        ("Über straße naïve", ["über", "straße", "naïve"]),
        ("gmail.users-messages", ["gmail", "user", "message"]),
        ("", []),
    ],
)
def test_names_and_texts_come_apart_into_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


@pytest.mark.processes
def test_without_bm25s_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['bm25s'] = None; import toolcrib.toolsets.search"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert "MissingExtraError: tool search needs an optional dependency" in done.stderr
    assert "pip install 'toolcrib[search]'" in done.stderr


async def test_the_word_user_finds_what_is_about_users() -> None:
    @ez_tool
    def get_user(user_id: int) -> str:
        """Look a user up."""
        return ""

    search = SearchTools(Toolset([get_user]))

    assert [entry.name for entry in search.ranked("find a user")] == ["get_user"]
