"""The support desk does what its README says, with both clients, against the stand-in as a server of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "support"
ORDER = "The lamp of order 1001 came broken."
each_client = pytest.mark.parametrize("client", ["openai", "anthropic"])


@pytest.fixture(scope="module")
def stand_in() -> Iterator[dict[str, str]]:
    """The environment that the stand-in prints."""
    with subprocess.Popen([sys.executable, str(FOLDER / "stand_in.py")], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        words = server.stdout.readline().removeprefix("export ").split()
        yield dict(word.split("=", 1) for word in words)
        server.terminate()


def desk_of_its_own(stand_in: dict[str, str], saved: Path, *words: str) -> str:
    """Return what the desk prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "desk.py"), *words, "--saved", str(saved)],
        capture_output=True,
        text=True,
        env={**os.environ, **stand_in},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return what the desk prints in this process: to load both clients takes one of its own two seconds."""
    main = run_path(str(FOLDER / "desk.py"))["main"]

    def desk(environment: dict[str, str], saved: Path, *words: str) -> str:
        monkeypatch.setattr("sys.argv", ["desk.py", *words, "--saved", str(saved)])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        main()
        return capsys.readouterr().out

    return desk


@each_client
def test_without_a_key_it_says_where_to_get_one(
    desk: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    key = f"{client.upper()}_API_KEY"
    monkeypatch.delenv(key, raising=False)

    with pytest.raises(SystemExit) as ended:
        desk({}, tmp_path / "session.json", "ask", ORDER, "--client", client)

    assert ended.value.code == f"Set {key}, or start examples/support/stand_in.py and export what it prints."


@pytest.mark.parametrize(("client", "is_in_processes"), [("openai", False), ("anthropic", True)])
def test_a_refund_waits_for_the_desk_and_goes_on_in_another_process(
    desk: Callable[..., str], stand_in: dict[str, str], tmp_path: Path, client: str, is_in_processes: bool
) -> None:
    saved = tmp_path / "session.json"
    if is_in_processes:
        desk = desk_of_its_own

    asked = desk(stand_in, saved, "ask", ORDER, "--client", client)
    waiting = desk(stand_in, saved, "pending")
    answered = desk(stand_in, saved, "answer", "yes", "--client", client)

    assert "refund needs approval" in asked
    assert "amount = 129.0" in asked
    assert "A session waits" in waiting
    assert "129.0 euros go back to ann@example.org" in answered
    assert "(3 requests, 300 tokens read, 30 written)" in answered
    assert desk(stand_in, saved, "pending") == "Nothing waits.\n"


@each_client
def test_a_refund_that_is_refused_is_not_paid(
    desk: Callable[..., str], stand_in: dict[str, str], tmp_path: Path, client: str
) -> None:
    saved = tmp_path / "session.json"
    desk(stand_in, saved, "ask", ORDER, "--client", client)

    answered = desk(stand_in, saved, "answer", "We do not refund lamps.", "--client", client)

    assert "We do not refund lamps." in answered
    assert "go back to" not in answered


@each_client
def test_a_question_without_a_number_is_answered_with_one(
    desk: Callable[..., str], stand_in: dict[str, str], tmp_path: Path, client: str
) -> None:
    said = desk(stand_in, tmp_path / "session.json", "ask", "It is broken!", "--client", client)

    assert said.startswith("Which order is it?")


CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "t1", "name": "refund", "input": {}}
SAYS = {"role": "user", "content": "Hi."}


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/chat/completions", {"messages": [SAYS, {"role": "assistant", "tool_calls": [CALL]}]}, "have no result"),
        ("/chat/completions", {"messages": [SAYS, {"role": "tool", "tool_call_id": "c1", "content": ""}]}, "no call"),
        ("/chat/completions", {"messages": [SAYS], "toolz": []}, "toolz"),
        ("/chat/completions", {"messages": [{"role": "nobody"}]}, "role"),
        ("/v1/messages", {"max_tokens": 9, "messages": [SAYS, {"role": "assistant", "content": [USE]}]}, "tool_result"),
        ("/v1/messages", {"max_tokens": 9, "messages": [SAYS, SAYS]}, "alternate"),
        ("/v1/messages", {"messages": [SAYS]}, "max_tokens"),
    ],
)
def test_the_stand_in_refuses_what_the_providers_refuse(
    stand_in: dict[str, str], path: str, body: dict[str, Any], why: str
) -> None:
    request = urllib.request.Request(
        stand_in["OPENAI_BASE_URL"] + path, json.dumps({"model": "m", **body}).encode(), method="POST"
    )

    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)

    with raised.value as error:
        assert (error.code, why in error.read().decode()) == (400, True)
