"""What a client is shown of an exception that was not made for it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from tests.adapters.mcp_server.clients import Way, every_generation
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


@every_generation
@pytest.mark.parametrize("errors", ["message", "masked"])
@pytest.mark.parametrize("error", [KeyError("hunter2"), SystemExit("hunter2")], ids=repr)
async def test_what_opens_the_runs_shows_nothing_when_it_raises(
    way: Way, errors: ErrorPolicy, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def opened(principal: str) -> Any:
        raise error

    shown_error = pytest.RaisesExc(
        MCPError, match="Internal server error", check=lambda raised: "hunter2" not in str(raised)
    )
    with pytest.RaisesGroup(shown_error, flatten_subgroups=True):
        async with way(build_server([broken], ServerOptions(run=opened, errors=errors))) as client:
            await client.list_tools()

    assert "hunter2" in caplog.text


def test_one_run_for_all_principals_is_refused() -> None:
    with pytest.raises(TypeError, match="run must be a function of the principal's name"):
        ServerOptions(run=cast("Any", Run()))


async def test_a_function_that_opens_no_run_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server = build_server([broken], ServerOptions(run=cast("Any", lambda name: None)))

    with pytest.RaisesGroup(pytest.RaisesExc(MCPError), flatten_subgroups=True):
        async with Client(piped(server)) as client:
            await client.list_tools()

    assert "which returned None, and not a Run" in caplog.text
