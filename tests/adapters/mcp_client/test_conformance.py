"""The official conformance suite, whose servers our client is held against in both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.adapters.mcp_client.conformance_client import play
from tests.npm.conformance import LIMIT, REVISIONS, check_manual, not_passed

RELAY = Path(__file__).parents[2] / "npm" / "relay.py"

_NO_PROVIDER = "an extension that the SDK has no OAuth provider for"

# Each with its reason, and a line in docs/mcp-client.md. What the suite runs without counting it is here, too.
NOT_PASSED = {
    "2025-11-25": {
        "auth/wif-jwt-bearer": _NO_PROVIDER,
        "auth/dpop": _NO_PROVIDER,
        "auth/dpop-nonce": _NO_PROVIDER,
    },
    "2026-07-28": {
        "auth/wif-jwt-bearer": _NO_PROVIDER,
        "auth/dpop": _NO_PROVIDER,
        "auth/dpop-nonce": _NO_PROVIDER,
    },
}


@asynccontextmanager
async def playing() -> AsyncGenerator[str]:
    """Play scenarios in this process; yields the command by which the suite asks for one.

    The suite begins all of them at once. Few are played at a time, as the SDK takes a server that has not answered for
    ten seconds for one of the older generation.
    """
    places = asyncio.Semaphore(4)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(await reader.readline())
        revision, context = asked["MCP_CONFORMANCE_PROTOCOL_VERSION"], asked.get("MCP_CONFORMANCE_CONTEXT", "{}")
        try:
            async with places:
                await play(asked["MCP_CONFORMANCE_SCENARIO"], asked["url"], revision, json.loads(context))
        except Exception:  # some servers of the suite are to be refused
            writer.write(traceback.format_exc().encode())
        writer.close()

    with TemporaryDirectory() as folder:  # the path of a socket is short
        line = str(Path(folder, "line"))
        async with await asyncio.start_unix_server(answer, line):
            yield f"{sys.executable} -I -S {RELAY} {line}"


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_suite_passes_but_for_what_is_listed(revision: str, tmp_path: Path) -> None:
    async with playing() as command:
        failed = await not_passed("client", revision, tmp_path, "--command", command)

    assert failed == set(NOT_PASSED[revision])


def test_the_manual_says_what_is_passed_and_what_is_not() -> None:
    check_manual("mcp-client.md", "client", NOT_PASSED)
