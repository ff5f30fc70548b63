"""What a client is shown of an exception that was not made for it."""

from __future__ import annotations

import pytest
from mcp.client.client import Client
from mcp_types import TextContent

from tests.ways_in.mcp import over_http, piped
from toolcrib.adapters.mcp_server import ServerOptions, build_server, http_app
from toolcrib.pipeline import ErrorPolicy, Run
from toolcrib.tools import ez_tool


@ez_tool
async def broken() -> None:
    raise KeyError("the key hunter2 is wrong")


async def shown(*, http: bool, **options: ErrorPolicy) -> str:
    given = ServerOptions(run=lambda name: Run(), **options)
    transport = over_http(http_app([broken], given)) if http else piped(build_server([broken], given))
    async with Client(transport) as client:
        result = await client.call_tool("broken", {})
    [part] = result.content
    assert isinstance(part, TextContent)
    return part.text


@pytest.mark.parametrize("options", [{}, {"errors": "masked"}])
async def test_over_http_it_is_a_reference(options: dict[str, ErrorPolicy]) -> None:
    text = await shown(http=True, **options)

    assert text.startswith("Error: `broken` failed (reference e_")


async def test_over_http_it_is_the_message_where_the_host_says_so() -> None:
    assert "hunter2" in await shown(http=True, errors="message")


async def test_over_stdio_it_is_what_the_run_says() -> None:
    assert "hunter2" in await shown(http=False)
    assert "hunter2" not in await shown(http=False, errors="masked")
