"""Requests: nothing that a model writes leaves its place in one."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.openapi.standin import StandIn, document, operation, parameter
from toolcrib import Completed, Failed
from toolcrib.errors import DocumentError
from toolcrib.openapi import toolset

TEXT = {"type": "string"}
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(
    ["..", ".", "%2e%2e", "..%2f", "a/../../b", "//evil.test", "@evil.test", "?x=1", "#f", "\r\nX: 1", "\\..\\", "%00"]
)


def one(where: str, schema: Any = TEXT, **parts: Any) -> StandIn:
    """Return a server with one operation, which has one parameter."""
    path = "/things/{p}/parts" if where == "path" else "/things"
    spec = [parameter("p", where, schema, **parts)]
    return StandIn(document({path: {"get": operation("x", spec)}}), checks=False)


@given(texts)
def test_a_part_of_a_path_stays_one_part(text: str) -> None:
    server = one("path")

    outcome = asyncio.run(server.call("x", {"p": text}))

    if text in ("", ".", ".."):
        assert isinstance(outcome, Failed)
        assert server.requests == []
    else:
        path, _, query = server.last.url.raw_path.decode().partition("?")
        assert [unquote(part) for part in path.split("/")] == ["", "v1", "things", text, "parts"]
        assert (query, server.last.url.host) == ("", "api.test")


@given(texts, st.booleans())
def test_a_value_in_a_query_stays_one_value(text: str, reserved: bool) -> None:
    server = one("query", allowReserved=reserved)

    asyncio.run(server.call("x", {"p": text}))

    assert [*server.last.url.params.multi_items()] == [("p", text)]
    assert server.last.url.fragment == ""


@given(texts)
def test_a_value_in_a_header_is_one_line_or_refused(text: str) -> None:
    server = one("header")

    outcome = asyncio.run(server.call("x", {"p": text}))

    if isinstance(outcome, Completed):
        assert server.last.headers["p"] == text
        assert text.isascii()
    else:
        assert isinstance(outcome, Failed)
        assert outcome.retryable
        assert server.requests == []


@pytest.mark.parametrize("text", ["a\r\nX-Admin: 1", "a\nb", "a\0", "é", " a", "a "])
async def test_a_header_has_no_line_break_and_nothing_beyond_ascii(text: str) -> None:
    server = one("header")

    outcome = await server.call("x", {"p": text})

    assert "is sent as a header: one line of ASCII characters" in outcome.text()
    assert server.requests == []


async def test_a_header_of_the_host_is_not_replaced_by_a_model() -> None:
    spec = [parameter("x-tenant", "header", TEXT), parameter("x-other", "header", TEXT)]
    server = StandIn(document({"/x": {"get": operation("x", spec)}}), checks=False)

    await server.call("x", {"x_tenant": "evil", "x_other": "mine"}, headers={"X-Tenant": "acme"})

    assert server.last.headers.get_list("x-tenant") == ["acme"]
    assert server.last.headers["x-other"] == "mine"


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Cookie", "Authorization"]
)
def test_where_a_request_goes_and_ends_is_no_argument(name: str) -> None:
    tools = toolset(document({"/x": {"post": operation("x", [parameter(name, "header", TEXT)])}}))

    assert tools["x"].parameters["properties"] == {}


@given(texts)
def test_a_cookie_stays_one_cookie(text: str) -> None:
    server = one("cookie")

    asyncio.run(server.call("x", {"p": text}))

    name, _, value = server.last.headers["cookie"].partition("=")
    assert (name, unquote(value)) == ("p", text)
    assert not set(value) & set('; ,"\\')


@pytest.mark.parametrize(
    ("style", "explode", "value", "path"),
    [
        ("simple", False, {"a": "1", "b": "2"}, "a,1,b,2"),
        ("simple", True, {"a": "1", "b": "2"}, "a=1,b=2"),
        ("label", False, ["x", "y"], ".x,y"),
        ("label", True, ["x", "y"], ".x.y"),
        ("label", True, {"a": "1", "b": "2"}, ".a=1.b=2"),
        ("matrix", False, ["x", "y"], ";p=x,y"),
        ("matrix", True, ["x", "y"], ";p=x;p=y"),
        ("matrix", True, {"a": "1", "b": "2"}, ";a=1;b=2"),
        ("matrix", False, "x", ";p=x"),
    ],
)
async def test_a_path_has_the_styles_of_the_specification(style: str, explode: bool, value: Any, path: str) -> None:
    server = one("path", {}, style=style, explode=explode)

    await server.call("x", {"p": value})

    assert server.last.url.raw_path.decode() == f"/v1/things/{path}/parts"


async def test_an_argument_that_is_not_of_the_document_is_refused() -> None:
    server = one("query")

    outcome = await server.call("x", {"p": "a", "admin": True})

    assert "admin" in outcome.text()
    assert server.requests == []


async def test_null_leaves_an_optional_parameter_out() -> None:
    server = one("query", {"type": ["string", "null"]})

    await server.call("x", {"p": None})

    assert server.last.url.raw_path == b"/v1/things"


# --- servers

SERVERS = [
    {
        "url": "https://{region}.api.test/{v}",
        "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}, "v": {"default": "v1"}},
    },
    {"url": "https://test.api.test"},
]


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "https://eu.api.test/v1/x"),
        ({"variables": {"region": "us", "v": "v2"}}, "https://us.api.test/v2/x"),
        ({"server": 1}, "https://test.api.test/x"),
        ({"server": "http://mine.test/base/"}, "http://mine.test/base/x"),
    ],
)
async def test_the_host_chooses_the_server(options: dict[str, Any], address: str) -> None:
    server = StandIn(document({"/x": {"get": operation("x")}}) | {"servers": SERVERS}, checks=False)

    await server.call("x", {}, **options)

    assert str(server.last.url) == address


@pytest.mark.parametrize(
    ("servers", "options", "problem"),
    [
        ([], {}, r"names no server on the web \('/'\); say where it is with server="),
        ([{"url": "file:///etc"}], {}, "names no server on the web"),
        ([{"url": "ftp://files.test"}], {}, "names no server on the web"),
        ([{"url": "https://{x}.test"}], {}, "give it with variables={'x'"),
        (SERVERS, {"variables": {"region": "evil"}}, "must be one of eu, us, and not 'evil'"),
        (SERVERS, {"server": 7}, "has 2 servers, and `server` says 7"),
        ([{"url": "https://me:secret@api.test"}], {}, "has a server with more than an address"),
    ],
)
def test_a_server_that_cannot_be_used_is_an_error_that_names_the_mend(
    servers: list[Any], options: dict[str, Any], problem: str
) -> None:
    found = document({"/x": {"get": operation("x")}}) | {"servers": servers}

    with pytest.raises(DocumentError, match=problem):
        toolset(found, refused="raise", **options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"variables": {"regoin": "us"}}, "`regoin`: `variables` has it, and no server .* Did you mean `region`"),
        ({"effects": {"x": "read"}}, "openapi.toolset: `x`: effect is 'none', .* and not 'read'"),
        ({"sources": {"x": "mine"}}, "openapi.toolset: `x`: source is .* 'mine' is not one of them"),
        ({"headers": {"X-Trace": 5}}, "openapi.toolset: the header 'X-Trace' is a value of the type int; give a text"),
        ({"headers": ["X-Trace: 5"]}, "openapi.toolset: headers is a value of the type list; give values by name"),
        ({"pages": "all"}, "openapi.toolset: pages is 'all'; give one of"),
        ({"prefix": "a b"}, "openapi.toolset: the prefix is 'a b'; give 1 to 128 characters"),
    ],
)
def test_an_option_without_an_effect_is_an_error_that_names_it(options: dict[str, Any], problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        toolset(document({"/x": {"get": operation("x")}}) | {"servers": SERVERS}, **options)


async def test_an_operation_may_have_a_server_of_its_own() -> None:
    spec = operation("up", servers=[{"url": "https://uploads.test"}])
    server = StandIn(document({"/up": {"get": spec}}), checks=False)

    await server.call("up", {})

    assert str(server.last.url) == "https://uploads.test/up"


# --- bodies


async def test_bytes_are_sent_as_they_are() -> None:
    spec = operation("put", requestBody={"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}})
    server = StandIn(document({"/f": {"put": spec}}), checks=False)

    await server.call("put", {"body": {"data": "AP8="}})

    assert server.last.content == b"\x00\xff"
    assert server.last.headers["content-type"] == "image/png"


@pytest.mark.parametrize("file", [{"data": "no base64!"}, {"url": "http://169.254.169.254/"}, {}])
async def test_a_file_that_has_no_bytes_is_refused_and_never_fetched(file: dict[str, Any]) -> None:
    spec = operation("put", requestBody={"content": {"application/octet-stream": {}}})
    server = StandIn(document({"/f": {"put": spec}}), checks=False)

    outcome = await server.call("put", {"body": file})

    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert server.requests == []


async def test_a_text_is_sent_as_text() -> None:
    spec = operation("put", requestBody={"content": {"text/plain": {"schema": TEXT}}})
    server = StandIn(document({"/f": {"put": spec}}), checks=False)

    await server.call("put", {"body": "é"})

    assert (server.last.content, server.last.headers["content-type"]) == ("é".encode(), "text/plain")


@pytest.mark.parametrize(
    ("media_types", "sent"),
    [
        (["*/*"], "application/json"),
        (["application/json-patch+json", "application/merge-patch+json"], "application/merge-patch+json"),
        (["application/json-patch+json"], "application/json-patch+json"),
    ],
)
async def test_what_has_a_shape_is_sent_as_json(media_types: list[str], sent: str) -> None:
    schema = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    content = {name: {"schema": schema} for name in media_types}
    server = StandIn(document({"/f": {"patch": operation("scale", requestBody={"content": content})}}), checks=False)

    await server.call("scale", {"body": {"replicas": 3.0}})

    assert repr(json.loads(server.last.content)) == "{'replicas': 3}"
    assert server.last.headers["content-type"] == sent


async def test_bytes_of_any_type_are_a_file() -> None:
    content = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    server = StandIn(document({"/f": {"put": operation("put", requestBody={"content": content})}}), checks=False)

    await server.call("put", {"body": {"data": "AP8=", "mime_type": "image/png"}})

    assert (server.last.content, server.last.headers["content-type"]) == (b"\x00\xff", "image/png")


async def test_a_form_writes_names_in_names_where_the_document_says_so() -> None:
    schema = {"type": "object", "properties": {"card": {"type": "object"}, "expand": {"type": "array"}}}
    deep = {"style": "deepObject", "explode": True}
    content = {"application/x-www-form-urlencoded": {"schema": schema, "encoding": {"card": deep, "expand": deep}}}
    server = StandIn(document({"/f": {"post": operation("pay", requestBody={"content": content})}}), checks=False)

    await server.call("pay", {"body": {"card": {"number": "1", "owner": {"name": "A&B"}}, "expand": ["x", "y"]}})

    text = unquote(server.last.content.decode())
    assert text == "card[number]=1&card[owner][name]=A&B&expand[0]=x&expand[1]=y"
    assert b"A%26B" in server.last.content


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/search?type=cat", "/v1/search?type=cat&q=a%20b"),
        ("/search?kind={kind}&all", "/v1/search?kind=x%26y&all&q=a%20b"),
        ("/search#cats", "/v1/search?q=a%20b"),
        ("/search?type=cat#cats?", "/v1/search?type=cat&q=a%20b"),
        ("/{kind}#{kind}", "/v1/x%26y?q=a%20b"),
    ],
)
async def test_a_query_and_a_fragment_of_a_path_are_what_they_are(path: str, target: str) -> None:
    kind = [parameter("kind", "path", {"type": "string"})] if "{kind}" in path else []
    made = StandIn(document({path: {"get": operation("get", [parameter("q", "query", {}), *kind])}}), checks=False)

    outcome = await made.call("get", {"q": "a b", **({"kind": "x&y"} if kind else {})})

    assert isinstance(outcome, Completed)
    assert made.last.url.raw_path.decode() == target
