"""Operators' commands for many at once: requests that are answered, and work that is cancelled, resumed and retried."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Keep
from tests.cli.terminal import terminal
from tests.postgres import Postgres
from toolcrib.calls import Denial, Grant
from toolcrib.turns import AgentRegistry

MAIN = "from toolcrib.cli import main; main()"


def test_several_requests_are_answered_at_once_each_as_if_alone(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None]
) -> None:
    for id in ("ask_1a", "ask_2b", "ask_3c"):
        keep(id)
    toolcrib("approvals", "deny", "--yes", "2b")

    both = toolcrib("approvals", "approve", "--yes", "1a", "2b", "ask_1a", "3c")
    unknown = toolcrib("approvals", "deny", "--yes", "1a", "9z")

    assert both.exit_code == 1
    assert both.stdout == "approved `buy`, as ann (token) (ask_1a)\napproved `buy`, as ann (token) (ask_3c)\n"
    assert "ask_2b" in both.stderr
    assert [type(answer_to(id)) for id in ("ask_1a", "ask_2b", "ask_3c")] == [Grant, Denial, Grant]
    assert (unknown.exit_code, unknown.stdout) == (2, "")


@pytest.mark.parametrize("command", ["approve", "deny", "done", "accept"])
def test_an_option_by_its_name_elsewhere_is_told_by_ours(toolcrib: Command, command: str) -> None:
    group = "pins" if command == "accept" else "approvals"

    refused = toolcrib(group, command, "1a", "--as", "ann")

    assert refused.exit_code == 2
    assert "No such option: --as" in refused.stderr
    assert "--by" in refused.stderr


def test_all_pending_requests_of_a_tool_are_answered_but_those_in_doubt(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None]
) -> None:
    keep("ask_1a")
    keep("ask_2b")
    keep("ask_3c", in_doubt=True)

    asked = toolcrib("approvals", "approve", "--tool", "buy")
    before = answer_to("ask_1a")
    done = toolcrib("approvals", "approve", "--tool", "buy", "--yes", "--json")
    again = toolcrib("approvals", "approve", "--tool", "buy", "--yes")

    assert (asked.exit_code, before) == (2, None)
    assert "Add --yes if the 2 requests above are the ones" in asked.stderr
    assert [entry["id"] for entry in json.loads(done.stdout)] == ["ask_1a", "ask_2b"]
    assert done.stderr == "1 of `buy` in doubt is left; answer each by its id\n"
    assert answer_to("ask_3c") is None
    assert (again.exit_code, again.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name requests, or give --tool"),
        (["1a", "--tool", "buy"], "name requests, or give --tool"),
        (["1a", "2b", "--always"], "it answers one request"),
        (["1a", "2b", "--arguments", "{}"], "it answers one request"),
        (["--tool", "buy", "--input", "x"], "it answers one request"),
    ],
)
def test_what_answers_one_call_is_not_given_for_several(
    toolcrib: Command, keep: Keep, arguments: list[str], problem: str
) -> None:
    keep("ask_1a")
    keep("ask_2b")

    refused = toolcrib("approvals", "approve", "--yes", *arguments)

    assert refused.exit_code == 2
    assert problem in " ".join(refused.stderr.replace("│", " ").split())


# --- work


@pytest.fixture(params=["sqlite", "postgres"])
def work(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of work, for the commands."""
    url = str(tmp_path / "work.db")
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.url(f"bulk_{len(request.node.name)}")  # one for each test
    monkeypatch.setenv("TOOLCRIB_DATABASE", url)


def put(toolcrib: Command, *arguments: str) -> str:
    """Put a call into the queue, and return its id."""
    AgentRegistry.clear()  # each command is a process of its own otherwise
    return toolcrib("enqueue", *arguments).stdout.strip()


def states(toolcrib: Command) -> dict[str, str]:
    listed = json.loads(toolcrib("workflows", "list", "--json").stdout)
    return {one["id"]: one["state"] for one in listed}


@pytest.mark.usefixtures("work")
def test_work_is_cancelled_and_resumed_by_ids_and_by_what_it_is(toolcrib: Command, tools: str) -> None:
    first, second = (put(toolcrib, tools, "add", '{"a": 1}') for _ in range(2))
    other = put(toolcrib, tools, "broken", '{"text": "x"}')
    later = put(toolcrib, tools, "broken", '{"text": "x"}', "--delay", "600")

    asked = toolcrib("workflows", "cancel", "--all", "--name", "broken")
    past = toolcrib("workflows", "cancel", "--all", "--before", "2001-01-31", "--yes")
    untouched = states(toolcrib)
    by_id = toolcrib("workflows", "cancel", first, "w9", second)
    after_ids = states(toolcrib)
    by_name = toolcrib("workflows", "cancel", "--all", "--name", "broken", "--yes", "--json")
    resumed = toolcrib("workflows", "resume", "--all", "--state", "cancelled", "--name", "tools: add", "--yes")

    assert asked.exit_code == 2
    assert ": 1 delayed, 1 waiting\nnothing was done: there is no terminal" in asked.stderr
    assert past.stderr.endswith(": no work fits\n")
    assert set(untouched.values()) == {"waiting", "delayed"}
    assert (by_id.exit_code, "there is no workflow w9" in by_id.stderr) == (1, True)
    assert after_ids == {first: "cancelled", second: "cancelled", other: "waiting", later: "delayed"}
    assert {one["id"] for one in json.loads(by_name.stdout)} == {other, later}
    assert resumed.exit_code == 0
    assert states(toolcrib) == {first: "waiting", second: "waiting", other: "cancelled", later: "cancelled"}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("typed", "status", "state"), [("y", 0, "cancelled"), ("n", 1, "waiting")])
@pytest.mark.usefixtures("work")
def test_a_person_is_asked_before_all_work_is_cancelled(
    toolcrib: Command, tools: str, typed: str, status: int, state: str
) -> None:
    ids = [put(toolcrib, tools, "add", '{"a": 1}') for _ in range(2)]

    with terminal("workflows", "cancel", "--all") as screen:
        screen.wait_for("do it? [y]es, [n]o: ")
        shown = screen.text
        screen.type(typed)
        ended = screen.end()

    assert ": 2 waiting\n" in shown
    assert (ended, states(toolcrib)) == (status, dict.fromkeys(ids, state))


@pytest.mark.usefixtures("work")
def test_all_that_failed_is_retried(toolcrib: Command, tools: str) -> None:
    failing = {put(toolcrib, tools, "broken", '{"text": "x"}') for _ in range(2)}
    done = put(toolcrib, tools, "add", '{"a": 1}')
    with subprocess.Popen([sys.executable, "-c", MAIN, "worker", tools], stderr=subprocess.DEVNULL) as worker:
        while set(states(toolcrib).values()) != {"done", "failed"}:
            assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)

    retried = toolcrib("workflows", "retry", "--all", "--state", "failed", "--yes")

    assert retried.exit_code == 0
    assert states(toolcrib) == {done: "done"} | dict.fromkeys(failing, "waiting")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name workflows, or give --all"),
        (["w1", "--all"], "name workflows, or give --all"),
        (["w1", "--name", "add"], "it chooses among --all"),
        (["--all", "--state", "done"], "is not one of failed, which `retry` is for"),
        (["--all", "--before", "soon"], "'soon' is not a time; write how long ago (30m, 2h, 7d, 4w), or a time"),
    ],
)
def test_which_work_is_meant_is_said_in_one_way(toolcrib: Command, arguments: list[str], problem: str) -> None:
    refused = toolcrib("workflows", "retry", *arguments)

    assert refused.exit_code == 2
    assert problem in " ".join(refused.stderr.replace("│", " ").split())
