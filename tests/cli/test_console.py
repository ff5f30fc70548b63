"""`console`: serves what a database holds until it is told to stop, and refuses what would let everybody in."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolcrib.console as page
from tests.cli.conftest import Command
from toolcrib.cli._console import webhook_of

TOKEN = "a-token-of-the-tests-0123"


def _ask(port: int, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, json.loads(body)


def _login(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"content-type": "application/json", "origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", "/api/login", json.dumps({"token": TOKEN}), headers)
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_it_serves_what_the_database_holds_until_it_is_stopped(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from toolcrib.cli import main; main()",
        "console",
        "--database",
        "new.db",
        "--port",
        "0",
    ]
    environment = {**os.environ, "TOOLCRIB_CONSOLE_TOKEN": f"ann={TOKEN}"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        made, said = process.stderr.readline(), process.stderr.readline()
        assert made.startswith(f"made the new database {tmp_path / 'new.db'}")
        found = re.fullmatch(
            rf"{re.escape(str(tmp_path))}/new\.db at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C stops it\)\n", said
        )
        assert found is not None, said
        port = int(found[1])

        refused, _ = _ask(port, "/api/state")
        taken, state = _ask(port, "/api/state", authorization=f"Bearer {TOKEN}")
        _login(port)
        logged = process.stderr.readline()
        process.send_signal(signal.SIGTERM)

        assert (refused, taken, state["name"]) == (401, 200, "ann")
        assert logged.endswith(" ann logged in from 127.0.0.1\n")
        status, said_last = process.wait(60), process.stderr.read()
    assert (status, said_last) == (0, "stopped\n")
    assert (tmp_path / "new.db").is_file()


def test_a_token_may_be_in_a_file(toolcrib: Command, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")

    of_a_file = toolcrib("console", "--port", "0", "--token", "ann=@token")
    of_none = toolcrib("console", "--port", "0", "--token", "ann=@gone")

    assert "the token of ann must have at least 16 characters" in of_a_file.stderr
    assert "cannot read gone: No such file or directory" in re.sub(r"[\s│]+", " ", of_none.stderr)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "give a token or a login, or listen on 127.0.0.1"),
        (["--token", "short"], "at least 16 characters"),
        (["--token", TOKEN, "--token", TOKEN], "two tokens belong to no holder"),
        (["--database", "mysql://x/y"], "`mysql` is not a kind of database"),
        (["--database", "."], "."),
    ],
)
def test_what_cannot_be_is_one_sentence(toolcrib: Command, arguments: list[str], says: str) -> None:
    result = toolcrib("console", "--port", "0", *arguments)

    assert result.exit_code == 2
    assert says in re.sub(r"[\s│]+", " ", result.stderr)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("given", "url", "groups"),
    [
        ("https://x.example/hook?key=1", "https://x.example/hook?key=1", ()),
        ("managers=https://x.example/hook?key=1", "https://x.example/hook?key=1", ("managers",)),
        ("managers, legal=http://x.example", "http://x.example", ("managers", "legal")),
    ],
)
def test_groups_may_stand_before_the_url_of_a_webhook(given: str, url: str, groups: tuple[str, ...]) -> None:
    assert webhook_of(page, given) == page.Webhook(url, groups=groups)
