"""Arguments that a tool accepts arrive at the server as the document says: openapi-core reads them back."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qsl, unquote

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed

TEXTS = {"type": "array", "items": {"type": "string"}}
PART = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "additionalProperties": False,
}
NESTED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "sizes": {"type": "array", "items": {"type": "number"}}, "part": PART},
    "additionalProperties": False,
}

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
filled = texts.filter(bool).filter(lambda text: text not in (".", ".."))
# in lists that are parted by a character, openapi-core reads that character as the end of an item
items = st.lists(texts.filter(lambda text: not set(text) & set(", |") and text != ""), min_size=1, max_size=3)
whole = st.integers(-(10**9), 10**9)
parts = st.fixed_dictionaries({"a": texts.filter(bool), "b": whole})

QUERY = [
    parameter("text", "query", {"type": "string"}),
    parameter("number", "query", {"type": "number"}),
    parameter("flag", "query", {"type": "boolean"}),
    parameter("several", "query", TEXTS),
    parameter("commas", "query", TEXTS, explode=False),
    parameter("pipes", "query", TEXTS, style="pipeDelimited", explode=False),
    {"name": "json", "in": "query", "content": {"application/json": {"schema": NESTED}}},
    parameter("free", "query", {"type": "string"}, allowReserved=True),
]
query = st.fixed_dictionaries(
    {},
    optional={
        "text": texts.filter(bool),  # openapi-core reads an empty value as none
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.booleans(),
        "several": st.lists(texts.filter(bool), min_size=1, max_size=3),
        "commas": items,
        "pipes": items,
        "json": st.fixed_dictionaries({"name": texts, "sizes": st.lists(whole), "part": parts}),
        "free": texts.filter(bool),
    },
)
headers = st.from_regex(r"[!-~]([ -~]{0,10}[!-~])?", fullmatch=True)


@given(query)
def test_a_query_arrives_as_the_document_says(arguments: dict[str, Any]) -> None:
    server = StandIn(document({"/search": {"get": operation("search", QUERY)}}))

    outcome = asyncio.run(server.call("search", arguments))

    assert isinstance(outcome, Completed)
    assert server.errors == []
    assert server.read[0]["query"] == arguments


@given(parts)
def test_a_deep_object_arrives_as_the_document_says(deep: dict[str, Any]) -> None:
    spec = [parameter("deep", "query", PART, style="deepObject", explode=True)]
    server = StandIn(document({"/search": {"get": operation("search", spec)}}))

    outcome = asyncio.run(server.call("search", {"deep": deep}))

    assert isinstance(outcome, Completed)
    assert server.errors == []
    assert server.read[0]["query"] == {"deep": deep}


@given(items)
def test_a_list_parted_by_spaces_arrives_as_the_document_says(listed: list[str]) -> None:
    spec = [parameter("spaces", "query", TEXTS, style="spaceDelimited", explode=False)]
    server = StandIn(document({"/search": {"get": operation("search", spec)}}), checks=False)

    asyncio.run(server.call("search", {"spaces": listed}))

    query = server.last.url.raw_path.decode().partition("?")[2]
    assert parse_qsl(query, keep_blank_values=True) == [("spaces", " ".join(listed))]


@given(filled, whole, items)
def test_a_path_arrives_as_the_document_says(name: str, number: int, tags: list[str]) -> None:
    spec = [parameter("name", "path", {"type": "string"}), parameter("number", "path", {"type": "integer"})]
    path = "/users/{name}/n{number}/{tags}"
    server = StandIn(
        document({path: {"get": operation("user", [*spec, parameter("tags", "path", TEXTS)])}}), checks=False
    )
    tags = [tag for tag in tags if tag not in (".", "..")] or ["x"]

    outcome = asyncio.run(server.call("user", {"name": name, "number": number, "tags": tags}))

    assert isinstance(outcome, Completed)
    segments = server.last.url.raw_path.decode().split("/")
    assert segments[:3] == ["", "v1", "users"]
    assert [unquote(segments[3]), segments[4]] == [name, f"n{number}"]
    assert [unquote(part) for part in segments[5].split(",")] == tags
    assert len(segments) == 6


@given(headers, st.lists(headers.filter(lambda text: "," not in text), min_size=1, max_size=3), texts.filter(bool))
def test_headers_and_cookies_arrive_as_the_document_says(text: str, listed: list[str], cookie: str) -> None:
    spec = [
        parameter("X-Text", "header", {"type": "string"}),
        parameter("X-List", "header", TEXTS),
        parameter("c", "cookie", {"type": "string"}),
    ]
    server = StandIn(document({"/h": {"get": operation("h", spec)}}))

    outcome = asyncio.run(server.call("h", {"X_Text": text, "X_List": listed, "c": cookie}))

    assert isinstance(outcome, Completed)
    assert server.errors == []
    assert server.read[0]["header"] == {"X-Text": text, "X-List": listed}
    assert server.read[0]["cookie"] == {"c": cookie}


@given(st.fixed_dictionaries({"name": texts, "sizes": st.lists(whole), "part": parts}))
def test_a_json_body_arrives_as_it_is(body: dict[str, Any]) -> None:
    content = {"content": {"application/json": {"schema": NESTED}}, "required": True}
    server = StandIn(document({"/things": {"post": operation("make", requestBody=content)}}))

    outcome = asyncio.run(server.call("make", {"body": body}))

    assert isinstance(outcome, Completed)
    assert server.errors == []
    assert json.loads(server.last.content) == body == server.read[0]["body"]


@given(st.fixed_dictionaries({"name": texts, "sizes": st.lists(whole, min_size=1), "part": parts}))
def test_a_form_arrives_as_the_document_says(body: dict[str, Any]) -> None:
    content = {"content": {"application/x-www-form-urlencoded": {"schema": NESTED}}}
    server = StandIn(document({"/form": {"post": operation("form", requestBody=content)}}), checks=False)

    asyncio.run(server.call("form", {"body": body}))

    pairs = parse_qsl(server.last.content.decode(), keep_blank_values=True)
    assert [text for name, text in pairs if name == "name"] == [body["name"]]
    assert [int(text) for name, text in pairs if name == "sizes"] == body["sizes"]
    assert [json.loads(text) for name, text in pairs if name == "part"] == [body["part"]]


@given(texts, st.binary(max_size=40), st.lists(texts, max_size=3))
def test_a_form_in_parts_arrives_as_the_document_says(title: str, data: bytes, notes: list[str]) -> None:
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "file": {"type": "string", "format": "binary"}, "notes": TEXTS},
    }
    content = {"content": {"multipart/form-data": {"schema": schema}}, "required": True}
    server = StandIn(document({"/upload": {"post": operation("upload", requestBody=content)}}, "3.0.3"), checks=False)
    file = {"kind": "media", "mime_type": "image/png", "data": base64.b64encode(data).decode(), "name": 'a "b".png'}

    asyncio.run(server.call("upload", {"body": {"title": title, "file": file, "notes": notes}}))

    form = asyncio.run(_form(server))
    assert [value for name, value in form if name == "title"] == [title]
    assert [value for name, value in form if name == "notes"] == notes
    assert [value for name, value in form if name == "file"] == [("a %22b%22.png", "image/png", data)]


async def _form(server: StandIn) -> list[tuple[str, Any]]:
    """Return the parts of the last request, as Starlette reads them."""

    async def stream() -> Any:
        yield server.last.content

    form = await MultiPartParser(Headers(dict(server.last.headers)), stream()).parse()
    found: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            found.append((name, (value.filename, value.content_type, await value.read())))
            await value.close()
        else:
            found.append((name, value))
    return found
