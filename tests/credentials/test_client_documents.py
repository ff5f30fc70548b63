"""Client metadata documents: the address of one is the client's id where an authorization server takes that."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.adapters.mcp_client.servers import serving
from tests.credentials.authority import query_of
from tests.networks import free_port
from toolcrib.credentials import MemoryCredentialStore, OAuth
from toolcrib.credentials._consent import ConsentFlow

DOCUMENT = "https://us.example/client.json"


@asynccontextmanager
async def authority(registered: list[str], **metadata: Any) -> AsyncGenerator[str]:
    """Serve the metadata of a server and of its authorization server, which registers each client as `registered`."""
    port = free_port()
    place = f"http://127.0.0.1:{port}"

    def refuse(request: Request) -> Response:
        return Response(status_code=401)

    def about_resource(request: Request) -> Response:
        return JSONResponse({"resource": f"{place}/mcp", "authorization_servers": [place]})

    def about_issuer(request: Request) -> Response:
        at = {name: f"{place}/{name}" for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint")}
        return JSONResponse({"issuer": place, **at, "code_challenge_methods_supported": ["S256"], **metadata})

    async def register(request: Request) -> Response:
        registered.append((await request.json())["client_name"])
        return JSONResponse({"client_id": "registered"}, status_code=201)

    routes = [
        Route("/mcp", refuse, methods=["GET", "POST"]),
        Route("/.well-known/oauth-protected-resource/mcp", about_resource),
        Route("/.well-known/oauth-authorization-server", about_issuer),
        Route("/registration_endpoint", register, methods=["POST"]),
    ]
    async with serving(Starlette(routes=routes), port):
        yield f"{place}/mcp"


async def client_at(server: str, **options: Any) -> str:
    """Return as which client a browser is sent to the authorization server of a server."""
    store = MemoryCredentialStore()
    consent = await OAuth(store, pages="http://127.0.0.1:1/consent", **options).consent_for("ann", server)
    assert consent is not None
    departure = await ConsentFlow(store).leave(consent.url.rpartition("/")[2], "browser")
    return query_of(departure.url)["client_id"]


@pytest.mark.parametrize(
    ("taken", "document", "expected"),
    [
        (True, DOCUMENT, DOCUMENT),
        (True, "", "registered"),
        (False, DOCUMENT, "registered"),
        ("yes", DOCUMENT, "registered"),
        (None, DOCUMENT, "registered"),
    ],
)
async def test_the_address_of_a_document_is_the_clients_id_where_a_server_takes_it(
    taken: Any, document: str, expected: str
) -> None:
    registered = list[str]()

    async with authority(registered, client_id_metadata_document_supported=taken) as server:
        client = await client_at(server, client_document=document)

    assert client == expected
    assert registered == ([] if expected == DOCUMENT else ["toolcrib"])


async def test_a_client_that_the_host_names_comes_before_its_document() -> None:
    async with authority([], client_id_metadata_document_supported=True) as server:
        named = {"client_id": "ours", "issuer": server.removesuffix("/mcp")}
        client = await client_at(server, client_document=DOCUMENT, **named)

    assert client == "ours"


def test_a_document_is_at_an_https_address() -> None:
    with pytest.raises(ValueError, match="client_document must be an https address, and is 'http://us"):
        OAuth(MemoryCredentialStore(), pages="http://127.0.0.1:1/consent", client_document="http://us.example/c.json")
