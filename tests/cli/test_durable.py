"""Durable work from the command line: enqueued, listed, cancelled, run by a worker that stops when it is told to."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.adapters.dbos.durable import count, durable, engine_of
from tests.cli.conftest import Command
from toolcrib.adapters.dbos import Client, DurableAgent, Schedule
from toolcrib.turns import AgentRegistry, Turn

PROGRAM = "print(add(1, 2))"
MAIN = "from toolcrib.cli import main; main()"


def told(result: Result) -> Any:
    """Return the JSON that a command printed."""
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_DATABASE", str(tmp_path / "work.db"))


def test_what_was_enqueued_is_listed_shown_cancelled_and_resumed(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)

    made = toolcrib(
        "enqueue", tools, "--program", "program.py", "--id", "p1", "--priority", "2", "--conversation", "c7"
    )
    listed = told(toolcrib("workflows", "list", "--json"))
    cancelled = toolcrib("workflows", "cancel", "p1")
    shown = told(toolcrib("workflows", "show", "p1", "--json"))
    page = toolcrib("workflows", "show", "p1").stdout
    resumed = told(toolcrib("workflows", "resume", "p1", "--json"))

    assert made.stdout == "p1\n"
    assert [(work["id"], work["kind"], work["target"], work["state"], work["priority"]) for work in listed] == [
        ("p1", "program", "tools", "waiting", 2)
    ]
    assert cancelled.stderr == "p1 is cancelled\n"
    assert shown["input"]["code"] == PROGRAM
    assert listed[0]["conversation_id"] == "c7"
    assert "the conversation c7" in page
    assert (shown["state"], resumed["state"]) == ("cancelled", "waiting")


def test_work_of_one_id_is_enqueued_once(toolcrib: Command, tools: str) -> None:
    first = toolcrib("enqueue", tools, "add", '{"a": 1}', "--id", "order-7", "--key", "k")
    AgentRegistry.clear()  # each command is a process of its own otherwise
    again = toolcrib("enqueue", tools, "add", '{"a": 2}', "--id", "order-7", "--key", "k")
    AgentRegistry.clear()
    other = toolcrib("enqueue", tools, "add", '{"a": 3}', "--key", "k")

    assert first.stdout == again.stdout == other.stdout
    unserved = f"no worker takes work from the queue tools now; start one: toolcrib worker {tools}\n"
    assert first.stderr == unserved
    assert again.stderr == f"nothing was enqueued: order-7 was before, and is once\n{unserved}"
    assert other.stderr == f"nothing was enqueued: the work below has the key k, and has not ended\n{unserved}"
    assert len(told(toolcrib("workflows", "list", "--json"))) == 1
    assert told(toolcrib("workflows", "show", "order-7", "--json"))["id"] == first.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("add", '{"a": "x"}'), "`add` cannot take these arguments: a: must be an integer"),
        (("nope",), "there is no tool `nope`"),
        (("add", "{"), "`add` cannot take these arguments: not valid JSON"),
        (("--program", "gone.py"), "cannot read gone.py: No such file or directory"),
        (("add", "--program", "p.py"), "give a program with --program: not both"),
        (
            ("add", '{"a": 1}', "--queue", "mail"),
            "it has no durable agent with the queue `mail` for this; there are the queues tools",
        ),
        ((), "name a tool, or give a program"),
    ],
)
def test_what_no_worker_could_run_is_not_enqueued(
    toolcrib: Command, tools: str, arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    result = toolcrib("enqueue", tools, *arguments)

    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.replace("│", " ").split())
    assert not (tmp_path / "work.db").exists()


@pytest.mark.parametrize("work", [("add", '{"a": 1}'), ("--program", "program.py")])
def test_work_without_the_partition_that_its_queue_needs_makes_no_database(
    toolcrib: Command, tmp_path: Path, work: tuple[str, ...]
) -> None:
    AgentRegistry.clear()
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "tenants.py").write_text(
        "from toolcrib import Agent, Toolkit, ez_tool\n"
        "from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Queue\n"
        "@ez_tool\ndef add(a: int) -> int: return a\n"
        "queue = Queue('tenants', partition_concurrency=1)\n"
        "agent = DurableAgent(Agent('of_tenants', 'Adds.', [add]), queue)\n"
        "kit = DurableToolkit(Toolkit([add]), queue, name='of_tenants', replace=True)\n"
    )

    result = toolcrib("enqueue", "tenants.py", *work)

    assert result.exit_code == 2
    assert "has limits for each partition: name the partition of this work" in " ".join(result.stderr.split())
    assert not (tmp_path / "work.db").exists()


def test_a_database_that_is_not_there_is_not_made_by_looking(toolcrib: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    missing = toolcrib("workflows", "list", "--database", "tolcrib.db")
    folder = toolcrib("workers", "list", "--database", "folder")

    assert (missing.exit_code, folder.exit_code) == (2, 2)
    assert "/tolcrib.db cannot be used: there is no such file. Name the one that is meant" in missing.stderr
    assert "/folder cannot be used: it is a folder. Name a file in it" in folder.stderr
    assert not (tmp_path / "tolcrib.db").exists()


def test_unknown_workflows_workers_and_states_are_said(toolcrib: Command, tools: str) -> None:
    toolcrib("enqueue", tools, "add", '{"a": 1}')

    assert "there is no workflow w9" in toolcrib("workflows", "show", "w9").stderr
    assert "there is no such worker" in toolcrib("workers", "recover", "w9").stderr
    for state, hint in (("over", ""), ("paused", ". Did you mean suspended?")):
        told = " ".join(toolcrib("workflows", "list", "--state", state).stderr.replace("│", " ").split())
        assert "is not one of cancelled, delayed, done" in told
        assert f"waiting{hint}" in told


def test_a_worker_answers_about_its_health_where_it_is_asked_to(tools: str) -> None:
    command = [sys.executable, "-c", MAIN, "worker", tools, "--health", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        place = worker.stderr.readline()
        began = worker.stderr.readline()
        with urllib.request.urlopen(f"{place.split()[-1]}/readyz") as answer:
            ready = answer.read()
        worker.send_signal(signal.SIGTERM)
        worker.stderr.read()

    assert re.fullmatch(r"/healthz, /readyz and /metrics are on http://127\.0\.0\.1:\d+\n", place)
    assert " takes work from tools in " in began
    assert ready == b"ready\n"
    assert worker.returncode == 0


def test_a_port_for_health_is_free_and_a_number(toolcrib: Command, tools: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = toolcrib("worker", tools, "--health", str(port))
    wrong = [toolcrib("worker", tools, "--health", given) for given in ("http", "localhost:", "65536", "0.0.0.0:-1")]

    assert refused.exit_code == 2
    assert refused.stderr == (
        f"cannot listen on 127.0.0.1:{port}: {os.strerror(errno.EADDRINUSE)}. "
        f"Give another address, as with --health {port + 1}\n"
    )
    assert [one.exit_code for one in wrong] == [2] * 4
    assert all("give a port, or host:port, as 9100" in " ".join(one.stderr.replace("│", " ").split()) for one in wrong)


def test_a_worker_does_what_waits_and_stops_when_it_is_told_to(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    toolcrib("enqueue", tools, "add", '{"a": 4}')
    AgentRegistry.clear()  # each command is a process of its own otherwise
    toolcrib("enqueue", tools, "--program", "program.py", "--id", "p1")
    AgentRegistry.clear()
    failed_id = toolcrib("enqueue", tools, "broken", '{"text": "x"}', "--id", "bad").stdout.strip()
    AgentRegistry.clear()
    toolcrib("enqueue", tools, "forever", "--id", "late", "--timeout", "0.5")
    command = [sys.executable, "-c", MAIN, "worker", tools, "--worker-id", "w1", "--grace", "20"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        began = worker.stderr.readline()
        while {work["state"] for work in told(toolcrib("workflows", "list", "--json"))} != {"done", "failed"}:
            assert worker.poll() is None
        AgentRegistry.clear()
        served = toolcrib("enqueue", tools, "add", '{"a": 5}', "--delay", "600")
        worker.send_signal(signal.SIGTERM)
        said = worker.stderr.read()

    assert worker.returncode == 0
    assert began.startswith("worker w1 takes work from tools in ")
    assert "worker w1 has stopped; nothing of its work is left" in said
    assert served.stderr == ""
    listed = toolcrib("workflows", "list", "--state", "failed").stdout
    assert re.search(r" tools: broken +tools +failed .* cannot read x *$", listed, re.MULTILINE)
    assert re.search(r" tools: forever +tools +failed .* it did not end within 0\.5 s *$", listed, re.MULTILINE)
    page = toolcrib("workflows", "show", "p1").stdout
    assert page.startswith("program p1 is done\n  of         tools\n")
    assert page.endswith("\nprogram:\n  print(add(1, 2))\n\ncalls:\n  1 add(a=1, b=2): completed, 3\n\noutput:\n  3\n")
    ended = toolcrib("workflows", "result", "p1")
    assert (ended.exit_code, ended.stdout) == (0, "3\n")
    failed = toolcrib("workflows", "result", "bad")
    assert (failed.exit_code, failed.stderr) == (1, f"{failed_id} is failed: cannot read x\n")
    assert told(toolcrib("workflows", "result", "p1", "--json"))["result"] is None
    delayed = toolcrib("workflows", "result", served.stdout.strip(), "--timeout", "0.1")
    assert (delayed.exit_code, delayed.stderr) == (1, f"{served.stdout.strip()} is delayed after 0.1 s\n")
    bad = toolcrib("workflows", "show", "bad").stdout
    assert re.search(r'^  call +broken\(text="x"\)\n  why +cannot read x$', bad, re.MULTILINE)
    assert toolcrib("workflows", "retry", "bad").stderr.endswith(" is waiting\n")
    assert "p1 is done, and only failed work is retried" in toolcrib("workflows", "retry", "p1").stderr
    assert told(toolcrib("workflows", "show", "p1", "--json"))["result"]["output"] == "3\n"
    assert [one["state"] for one in told(toolcrib("workers", "list", "--json"))] == ["stopped"]


def test_work_is_listed_and_changed_by_its_attributes(toolcrib: Command, tools: str) -> None:
    def enqueue(customer: str) -> str:
        AgentRegistry.clear()
        return toolcrib("enqueue", tools, "add", '{"a": 4}', "--attribute", f"customer={customer}").stdout.strip()

    acme, other = enqueue("acme=1"), enqueue("other")

    by_attribute = told(toolcrib("workflows", "list", "--attribute", "customer=acme=1", "--json"))
    both = told(toolcrib("workflows", "list", "--name", "tools: add", "--json"))
    page = toolcrib("workflows", "show", acme).stdout
    cancelled = toolcrib("workflows", "cancel", "--all", "--yes", "--attribute", "customer=other")
    refused = [
        toolcrib("workflows", "list", "--attribute", "customer"),
        toolcrib("workflows", "list", "--attribute", "a b=c"),
        toolcrib("workflows", "cancel", acme, "--attribute", "customer=acme"),
        toolcrib("enqueue", tools, "add", '{"a": 4}', "--attribute", "tries=3"),
    ]

    assert [(work["id"], work["attributes"]) for work in by_attribute] == [(acme, {"customer": "acme=1"})]
    assert {work["id"] for work in both} == {acme, other}
    assert re.search(r"^  attributes +customer=acme=1$", page, re.MULTILINE)
    assert cancelled.stderr.endswith(f"{other} is cancelled\n")
    assert [one.exit_code for one in refused] == [2, 2, 2, 2]


def test_work_is_forked_under_an_id_that_is_printed(toolcrib: Command, tools: str) -> None:
    first = toolcrib("enqueue", tools, "add", '{"a": 4}').stdout.strip()

    forked = toolcrib("workflows", "fork", first, "--id", "again")
    page = toolcrib("workflows", "show", "again").stdout
    refused = toolcrib("workflows", "fork", first, "--from", "2")

    assert page.startswith(f"turn {forked.stdout.strip()} is waiting\n")
    assert re.search(rf"^  fork of +{first}, step 1$", page, re.MULTILINE)
    assert (refused.exit_code, "is one call, and is forked from that" in refused.stderr) == (2, True)


def test_the_work_of_lost_workers_is_handed_over_at_once(toolcrib: Command, tools: str) -> None:
    toolcrib("enqueue", tools, "forever", "--id", "left")
    command = [sys.executable, "-c", MAIN, "worker", tools, "--worker-id", "w1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        while {work["state"] for work in told(toolcrib("workflows", "list", "--json"))} != {"running"}:
            assert worker.poll() is None
        living = toolcrib("workers", "recover", "--lost")
        worker.kill()

    handed_over, nothing = [toolcrib("workers", "recover", "--lost") for _ in range(2)]
    (listed,) = told(toolcrib("workflows", "list", "--json"))

    assert living.stderr.startswith("no worker on ")
    assert handed_over.stderr == "1 workflow of w1 waits for other workers now\n"
    assert nothing.stderr.startswith("no worker on ")
    assert listed["state"] == "waiting"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name one worker, or give --lost"),
        (["w1", "--lost"], "name one worker, or give --lost"),
        (["--lost", "--force"], "it is for a worker that was seen just now"),
    ],
)
def test_whose_work_is_handed_over_is_said_in_one_way(toolcrib: Command, arguments: list[str], problem: str) -> None:
    refused = toolcrib("workers", "recover", *arguments)

    assert refused.exit_code == 2
    assert problem in " ".join(refused.stderr.replace("│", " ").split())


async def _work_once(file: Path, agent: DurableAgent) -> None:
    async with engine_of(str(file), agent):
        pass


def test_a_schedule_is_listed_paused_triggered_resumed_and_deleted(toolcrib: Command, tmp_path: Path) -> None:
    agent = durable(count)
    with closing(Client(tmp_path / "work.db")) as client:
        agent.use(client)
        asyncio.run(agent.schedule(Schedule("nightly", "30 2 * * *", "Europe/Berlin"), Turn(count)))

    (before,) = told(toolcrib("schedules", "list", "--json"))
    shown = toolcrib("schedules", "list").stdout
    october = ("--since", "2026-10-01", "--until", "2026-10-07")
    early = toolcrib("schedules", "backfill", "nightly", *october)
    asyncio.run(_work_once(tmp_path / "work.db", agent))
    missed = told(toolcrib("schedules", "backfill", "nightly", *october, "--json"))
    paused = toolcrib("schedules", "pause", "nightly")
    refused = toolcrib("schedules", "backfill", "nightly", "--since", "7d")
    triggered = toolcrib("schedules", "trigger", "nightly").stdout.strip()
    page = toolcrib("workflows", "show", triggered).stdout
    resumed = told(toolcrib("schedules", "resume", "nightly", "--json"))
    deleted = toolcrib("schedules", "delete", "nightly")
    after = toolcrib("schedules", "list")
    missing = toolcrib("schedules", "pause", "nightly")

    assert (before["name"], before["cron"], before["timezone"]) == ("nightly", "30 2 * * *", "Europe/Berlin")
    assert "Europe/Berlin" in shown
    assert (early.exit_code, "Start a worker of this database first" in early.stderr) == (2, True)
    assert len(missed["ids"]) == 7
    assert paused.stderr == "the schedule nightly is paused\n"
    assert (refused.exit_code, "resume it first" in refused.stderr) == (2, True)
    assert re.search(r"schedule +nightly", page)
    assert resumed["state"] == "active"
    assert deleted.stderr == "the schedule nightly is deleted\n"
    assert after.stderr.startswith("there is no schedule in ")
    assert (missing.exit_code, "there is no schedule `nightly`" in missing.stderr) == (2, True)


def test_work_is_enqueued_listed_and_cancelled_by_its_partition(toolcrib: Command, tools: str) -> None:
    for tenant in ("north", "south"):
        AgentRegistry.clear()
        toolcrib("enqueue", tools, "add", '{"a": 1}', "--partition", tenant)

    (listed,) = told(toolcrib("workflows", "list", "--partition", "north", "--json"))
    table = toolcrib("workflows", "list").stdout
    page = toolcrib("workflows", "show", listed["id"]).stdout
    cancelled = toolcrib("workflows", "cancel", "--all", "--partition", "north", "--yes")
    left = told(toolcrib("workflows", "list", "--state", "waiting", "--json"))

    assert listed["partition"] == "north"
    assert "(north)" in re.sub(r"\s", "", table)
    assert re.search(r"partition +north", page)
    assert cancelled.exit_code == 0
    assert [work["partition"] for work in left] == ["south"]


def test_debounced_work_takes_the_place_of_what_waits_and_says_so(toolcrib: Command, tools: str) -> None:
    first = toolcrib("enqueue", tools, "add", '{"a": 1}', "--key", "k", "--debounce", "600")
    AgentRegistry.clear()
    second = toolcrib("enqueue", tools, "add", '{"a": 2}', "--key", "k", "--debounce", "600")
    AgentRegistry.clear()
    wrong = toolcrib("enqueue", tools, "add", '{"a": 2}', "--debounce", "600")

    assert first.stdout == second.stdout
    assert second.stderr.startswith("it took the place of the work below, which waited with the key k\n")
    assert told(toolcrib("workflows", "show", first.stdout.strip(), "--json"))["input"]["turn"]["kwargs"] == {"a": 2}
    assert (wrong.exit_code, "debounce needs a key" in wrong.stderr) == (2, True)
