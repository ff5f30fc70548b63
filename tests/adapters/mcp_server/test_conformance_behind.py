"""The official conformance suite, run against a server behind a gateway."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.mcp_server.http import command_over_http
from tests.adapters.mcp_server.test_conformance import TOOLS
from tests.npm.conformance import LIMIT, REVISIONS, check_manual, not_passed

_OWN_TASKS = "tasks are the gateway's own, and a quick call is none"
# Each with its reason, and a line in docs/gateway.md.
NOT_PASSED = {
    "2025-11-25": {},
    "2026-07-28": {
        "input-required-result-basic-elicitation": "a question has the key that the gateway gives it",
        "tasks-capability-negotiation": _OWN_TASKS,
        "tasks-lifecycle": _OWN_TASKS,
        "tasks-wire-fields": _OWN_TASKS,
        "tasks-required-task-error": "the gateway itself follows the task that a server requires",
        "tasks-mrtr-composition": "as without a gateway",
    },
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a gateway in front of the server with the tools that the suite asks for."""
    folder = tmp_path_factory.mktemp("behind")
    words = ["-m", "toolcrib", "serve", str(TOOLS), "--approve-by", "elicit"]
    server = {"command": sys.executable, "args": words, "toolcrib": {"ask_client": True, "resource_tools": False}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"suite": server}}))
    with command_over_http(folder, str(folder / "mcp.json"), "--approve-by", "elicit") as url:
        yield url


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_official_suite_passes_but_for_what_is_listed(gateway: str, revision: str, tmp_path: Path) -> None:
    failed = await not_passed("server", revision, tmp_path, "--url", gateway)

    assert failed == set(NOT_PASSED[revision])


def test_the_manual_says_what_is_passed_and_what_is_not() -> None:
    check_manual("gateway.md", "server", NOT_PASSED)
