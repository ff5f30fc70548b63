"""Pages: the arguments of the next one, by a link or a cursor, and several put together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed
from toolcrib.openapi import toolset

NUMBERS = {"type": "array", "items": {"type": "integer"}}
PAGE = [parameter("q", "query", {"type": "string"}), parameter("page", "query", {"type": "integer"})]


def linked(answers: Callable[[httpx2.Request], httpx2.Response]) -> StandIn:
    """Return a server whose lists have a `Link` header that the document describes."""
    answer = {
        "description": "a page",
        "headers": {"Link": {"schema": {"type": "string"}}},
        "content": {"application/json": {"schema": NUMBERS}},
    }
    return StandIn(
        document({"/n": {"get": {**operation("n", PAGE), "responses": {"200": answer}}}}), answers, checks=False
    )


def cursored(field: Any, argument: str, answers: Callable[[httpx2.Request], httpx2.Response]) -> StandIn:
    """Return a server whose lists have a cursor in them."""
    schema = {"type": "object", "properties": {"items": NUMBERS, **field}}
    answer = {"description": "a page", "content": {"application/json": {"schema": schema}}}
    spec = [parameter(argument, "query", {"type": "string"})]
    return StandIn(
        document({"/n": {"get": {**operation("n", spec), "responses": {"200": answer}}}}), answers, checks=False
    )


def numbered(request: httpx2.Request) -> httpx2.Response:
    """Answer with one of three pages, and a link to the next on a host that is another."""
    page = int(request.url.params.get("page", 1))
    link = f'<https://evil.test/n?page={page + 1}&admin=1&q=cats>; rel="next", <https://x.test/?page=3>; rel="last"'
    return httpx2.Response(200, json=[page * 10], headers={"link": link} if page < 3 else {})


async def value_of(server: StandIn, arguments: dict[str, Any], **options: Any) -> Any:
    outcome = await server.call("n", arguments, **options)
    assert isinstance(outcome, Completed)
    return outcome.value


async def test_a_link_offers_the_arguments_of_the_next_page_and_no_others() -> None:
    server = linked(numbered)

    first = await value_of(server, {"q": "cats"})
    last = await value_of(server, {"q": "cats", "page": 3})

    assert first == {"page": [10], "next": {"q": "cats", "page": 2}}
    assert last == {"page": [30], "next": None}
    assert {request.url.host for request in server.requests} == {"api.test"}


async def test_a_link_changes_nothing_but_the_query() -> None:
    answer = {"description": "a page", "headers": {"Link": {"schema": {"type": "string"}}}}
    spec = [parameter("owner", "path", {"type": "string"}), parameter("page", "query", {"type": "integer"})]
    paths = {"/{owner}": {"get": {**operation("n", spec), "responses": {"200": answer}}}}
    link = {"link": '</x?page=2&owner=evil>; rel="next"'}
    server = StandIn(document(paths), lambda request: httpx2.Response(200, json=[], headers=link), checks=False)

    value = await value_of(server, {"owner": "me"})

    assert value["next"] == {"owner": "me", "page": 2}


@pytest.mark.parametrize(
    ("field", "argument", "answer"),
    [
        ({"next_cursor": {"type": "string"}}, "cursor", {"next_cursor": "c2"}),
        ({"nextPageToken": {"type": "string"}}, "pageToken", {"nextPageToken": "c2"}),
        (
            {"metadata": {"type": "object", "properties": {"continue": {"type": "string"}}}},
            "continue",
            {"metadata": {"continue": "c2"}},
        ),
    ],
)
async def test_a_cursor_offers_the_arguments_of_the_next_page(field: Any, argument: str, answer: Any) -> None:
    server = cursored(field, argument, lambda request: httpx2.Response(200, json={"items": [1], **answer}))

    value = await value_of(server, {})

    assert value == {"page": {"items": [1], **answer}, "next": {argument: "c2"}}


@pytest.mark.parametrize("answer", [{"next_cursor": None}, {"next_cursor": ""}, {}, [1], {"next_cursor": {"a": 1}}])
async def test_a_page_without_a_cursor_is_the_last(answer: Any) -> None:
    server = cursored({"next_cursor": {"type": "string"}}, "cursor", lambda request: httpx2.Response(200, json=answer))

    assert await value_of(server, {}) == {"page": answer, "next": None}


async def test_a_cursor_that_does_not_move_is_the_last() -> None:
    answer = httpx2.Response(200, json={"next_cursor": "c1"})
    server = cursored({"next_cursor": {"type": "string"}}, "cursor", lambda request: answer)

    assert await value_of(server, {"cursor": "c1"}) == {"page": {"next_cursor": "c1"}, "next": None}


@pytest.mark.parametrize(
    ("pages", "value"),
    [(2, {"page": [10, 20], "next": {"page": 3, "q": "cats"}}), (9, {"page": [10, 20, 30], "next": None})],
)
async def test_pages_are_put_together_up_to_a_number(pages: int, value: Any) -> None:
    assert await value_of(linked(numbered), {}, pages=pages) == value


async def test_pages_of_objects_are_put_together_in_their_only_list() -> None:
    answers = iter([{"items": [1], "next_cursor": "b"}, {"items": [2], "next_cursor": None}])
    server = cursored(
        {"next_cursor": {"type": "string"}}, "cursor", lambda request: httpx2.Response(200, json=next(answers))
    )

    assert await value_of(server, {}, pages=5) == {"page": {"items": [1, 2], "next_cursor": None}, "next": None}


async def test_pages_put_together_have_the_cursor_of_the_last_one() -> None:
    answers = iter([{"items": [number], "next_cursor": f"after {number}"} for number in (1, 2, 3, 4)])
    server = cursored(
        {"next_cursor": {"type": "string"}}, "cursor", lambda request: httpx2.Response(200, json=next(answers))
    )

    value = await value_of(server, {}, pages=3)

    assert value == {"page": {"items": [1, 2, 3], "next_cursor": "after 3"}, "next": {"cursor": "after 3"}}


def test_an_answer_that_is_composed_of_the_same_parts_again_and_again_is_read_once() -> None:
    names = ["A", "B", "C", "D", "E"]
    schemas: dict[str, Any] = {
        one: {"allOf": [{"$ref": f"#/components/schemas/{other}"}] * 300} for one, other in pairwise(names)
    }
    schemas["E"] = {"properties": {"next_cursor": {"type": "string"}}}
    answer = {"description": "a page", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    spec = operation("n", [parameter("cursor", "query", {"type": "string"})])
    paths = {"/n": {"get": {**spec, "responses": {"200": answer}}}}

    tools = toolset(document(paths, components={"schemas": schemas}))

    assert "next" in str(tools["n"].return_schema)


async def test_without_pages_an_answer_is_what_it_is() -> None:
    assert await value_of(linked(numbered), {}, pages="off") == [10]


async def test_a_list_whose_document_says_nothing_of_pages_is_what_it_is() -> None:
    server = StandIn(document({"/n": {"get": operation("n", PAGE)}}), numbered, checks=False)

    assert await value_of(server, {}) == [10]


def test_the_schema_of_a_result_says_what_a_page_is() -> None:
    schema = linked(numbered).tools()["n"].return_schema

    assert schema is not None
    assert schema["properties"]["page"] == NUMBERS
    assert schema["required"] == ["page", "next"]
