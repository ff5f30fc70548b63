"""`toolcrib runs` and `toolcrib trace`, from a shell's point of view."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.postgres import Postgres
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.record import SqliteSink
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset


def test_runs_and_traces_of_what_call_recorded(toolcrib: Command, tools: str) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    toolcrib("call", tools, "buy", '{"item": "tea"}', "--suspend", "--record", "a.db")

    (waits, ended) = json.loads(toolcrib("runs", "a.db", "--json").stdout)
    table = toolcrib("runs", "--database", "a.db").stdout
    tree = toolcrib("trace", ended["id"][:12], "--database", "a.db").stdout
    of_call = json.loads(toolcrib("trace", waits["waiting"][0]["id"], "--database", "a.db", "--json").stdout)

    assert (ended["calls"], waits["calls"]) == ({"completed": 1}, {"suspended": 1})
    assert waits["id"] in table
    assert "1 suspended" in table
    assert f"run {ended['id']} ended" in " ".join(tree.split())
    assert "started   a=1, b=1" in tree
    assert (of_call["kind"], of_call["name"], of_call["status"]) == ("call", "buy", "suspended")


async def test_a_pipe_has_the_whole_reason(toolcrib: Command, tmp_path: Path) -> None:
    reason = "the shop is closed on this day, " * 9

    @tool(register=False, requires_approval=True)
    async def close() -> None:
        """Close."""

    with SqliteSink(tmp_path / "a.db") as sink:
        run = Run(approver=lambda request: request.deny(by="ann", message=reason), sinks=[sink])
        await Pipeline(Toolset([close])).run(ToolCall("close", {}), run)

    assert reason.strip() in toolcrib("runs", "a.db", "--outcome", "rejected").stdout


@pytest.mark.parametrize("columns", ["60", "160"])
def test_the_runs_with_an_outcome_show_the_tool_and_the_reason(
    toolcrib: Command, tools: str, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    toolcrib("call", tools, "buy", '{"item": "tea"}', "--deny", "buy", "--record", "a.db")
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    (run,) = json.loads(toolcrib("runs", "a.db", "--outcome", "rejected", "--json").stdout)
    monkeypatch.setenv("COLUMNS", columns)

    more = ("runs", "a.db", "--outcome", "rejected", "--outcome", "failed", "--json")
    assert [one["id"] for one in json.loads(toolcrib(*more).stdout)] == [run["id"]]
    assert toolcrib("runs", "a.db", "--outcome", "rejected,failed", "--json").stdout == toolcrib(*more).stdout
    lines = toolcrib("runs", "a.db", "--outcome", "rejected").stdout.splitlines()

    assert [call["tool"] for call in run["matching"]] == ["buy"]
    several = toolcrib("runs", "a.db", "--outcome", "rejected,failed").stdout

    assert lines[0].split()[-1] == "rejected"
    assert "buy rejected: `buy`" in several
    assert re.match(rf"{run['id']} .*buy: `buy` was denied", lines[1])
    assert max(map(len, lines)) <= int(columns)


@pytest.mark.parametrize(("columns", "each"), [(60, 2), (80, 2), (100, 2), (160, 1)])
def test_a_run_is_a_line_or_two_and_whole_on_a_narrow_screen_too(
    toolcrib: Command, monkeypatch: pytest.MonkeyPatch, columns: int, each: int
) -> None:
    @tool(requires_approval=True)
    async def pay(to: str) -> str:
        return to

    @tool
    async def add(a: int) -> int:
        return a

    pipeline = Pipeline(Toolset([pay, add]))
    with SqliteSink("a.db") as sink:
        for number in range(3):
            run = Run(
                f"run_{number:016}",
                sinks=(sink,),
                principal=f"ann{number}@example.com",
                approvals=MemoryApprovalStore(),
            )
            for _ in range(12):
                pipeline.run_sync(ToolCall("add", {"a": 1}), run)
            pipeline.run_sync(ToolCall("pay", {"to": "bob"}), run)
    monkeypatch.setenv("COLUMNS", str(columns))
    runs = json.loads(toolcrib("runs", "a.db", "--json").stdout)

    lines = toolcrib("runs", "a.db").stdout.splitlines()[-3 * each :]

    assert [run["id"] for run in runs] == [line.split()[0] for line in lines[::each]]
    for run, *shown in zip(runs, *(lines[at::each] for at in range(each)), strict=True):
        whole = "  ".join(shown)
        began = datetime.fromisoformat(run["started_at"]).astimezone().isoformat(" ", "seconds")[:19]
        for text in (began, run["principal"], "12 completed, 1 suspended", "pay", "pipeline"):
            assert text in whole
        assert max(map(len, shown)) <= columns


def test_short_runs_are_a_line_each_on_a_narrow_screen(
    toolcrib: Command, tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    toolcrib("call", tools, "buy", '{"item": "tea"}', "--suspend", "--record", "a.db")
    monkeypatch.setenv("COLUMNS", "80")

    head, waits, ended = toolcrib("runs", "a.db").stdout.splitlines()

    assert head.split() == ["id", "way", "in", "begun", "calls", "waits", "for"]
    assert "1 suspended" in waits
    assert "buy" in waits
    assert "1 completed" in ended


def test_runs_are_chosen_by_when_they_began(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")

    before = toolcrib("runs", "a.db", "--until", "1h")
    within = toolcrib("runs", "a.db", "--since", "1h", "--until", datetime.now().date().isoformat(), "--json")

    assert (before.stdout, before.stderr) == ("", f"there is no such run in {tmp_path / 'a.db'}\n")
    assert len(json.loads(within.stdout)) == 1


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["runs", "--outcome", "refused"], "rejected"),
        (["runs", "--outcome", "denied"], "rejected"),
        (["runs", "--outcome", "complete"], "completed"),
        (["calls"], "'runs'"),
        (["run"], "'call' or 'exec'"),
    ],
)
def test_a_word_that_is_not_known_here_has_the_nearest_one_named(
    toolcrib: Command, command: list[str], meant: str
) -> None:
    refused = toolcrib(*command)

    assert refused.exit_code == 2
    assert f"Did you mean {meant}?" in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        *(
            (["serve", *words], "The port is an option: --port 8001")
            for words in (
                ["mcp.json", "--http", "8001"],
                ["--http", "8001", "mcp.json"],
                ["--http", ":8001", "tools.py"],
                ["127.0.0.1:8001", "tools.py", "--http"],
            )
        ),
        *(([*words, "--database", ""], "--database is empty") for words in (["runs"], ["approvals", "list"])),
        (["console", "--database", " ", "--port", "0"], "--database is empty"),
        (
            ["serve", "mcp.json", "--approve", "pay"],
            'declared in the file, as "toolcrib": {"approval": ["TOOL"]} of a server',
        ),
        (["serve", "mcp.json", "--require-approval", "pay"], "in Python, as @tool(requires_approval=True)."),
        (["call", "crib.py", "refund", "order=1"], 'write the arguments as one JSON object: \'{"order": "1"}\''),
        (["call", "crib.py", "refund", "order=1", "euros=2"], "The arguments of a tool are one JSON object"),
    ],
)
def test_words_in_the_wrong_form_have_the_right_one_named(toolcrib: Command, command: list[str], hint: str) -> None:
    refused = toolcrib(*command)

    assert refused.exit_code == 2
    assert hint in " ".join(refused.stderr.replace("│", " ").split())


def test_what_is_not_there_is_said(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    (run,) = json.loads(toolcrib("runs", "a.db", "--json").stdout)

    absent = toolcrib("runs", "no.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE orders (id)")
    before = (tmp_path / "other.db").read_bytes()
    foreign = [toolcrib(*command, "--database", "other.db") for command in (["runs"], ["approvals", "list"])]
    none = toolcrib("runs", "a.db", "--tool", "buy")
    misspelt = toolcrib("trace", f"{run['id']}x", "--database", "a.db")
    unknown = toolcrib("trace", "zzz", "--database", "a.db")
    ambiguous = toolcrib("trace", "", "--database", "a.db")
    outcome = toolcrib("runs", "a.db", "--outcome", "gone")
    since = toolcrib("runs", "a.db", "--since", "soon")

    assert (absent.exit_code, none.exit_code, misspelt.exit_code, unknown.exit_code) == (2, 0, 2, 2)
    assert "/no.db cannot be used: there is no such file" in absent.stderr
    for refused in foreign:
        assert refused.exit_code == 2
        assert "/other.db cannot be used: it holds nothing of Toolcrib" in refused.stderr
    assert (tmp_path / "other.db").read_bytes() == before
    assert none.stderr == f"there is no such run in {tmp_path / 'a.db'}\n"
    assert f"Did you mean {run['id']}?" in misspelt.stderr
    assert "`toolcrib runs` lists the runs" in unknown.stderr
    assert "Give more of the id" in ambiguous.stderr
    assert "is not one of completed, failed" in outcome.stderr.replace("\n", " ").replace("│ ", "")
    assert "is not a time" in since.stderr


CHANGED = """
from toolcrib.tools import ez_tool


@ez_tool
def add(a: int, b: int) -> int:
    raise RuntimeError("a replay never gets here")


@ez_tool(requires_approval=True)
def buy(item: str, price: float = 1.0) -> dict:
    raise RuntimeError("a replay never gets here")
"""


def test_a_replay_lists_what_would_differ(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    toolcrib("call", tools, "add", '{"a": 1, "b": 2}', "--record", "a.db")
    toolcrib("call", tools, "buy", '{"item": "tea"}', "--yes", "--record", "a.db")
    (tmp_path / "changed.py").write_text(CHANGED, "utf-8")

    same = toolcrib("replay", "a.db", "--tools", tools)
    changed = toolcrib("replay", "--database", "a.db", "--tools", "changed.py")
    as_json = toolcrib("replay", "a.db", "--tools", "changed.py", "--json")

    assert (same.exit_code, same.stdout, same.stderr) == (0, "", "3 calls of 3 runs: 0 would differ\n")
    assert changed.exit_code == as_json.exit_code == 1
    assert changed.stdout.splitlines()[1].split() == ["add", "runs", "->", "invalid_arguments", "1"]
    assert "b: missing, it is required" in changed.stdout.replace("\n", " ")
    found = json.loads(as_json.stdout)
    assert found["summary"] == [{"tool": "add", "change": "runs -> invalid_arguments", "calls": 1}]
    assert found["differences"][0]["now"]["kind"] == "invalid_arguments"


def test_a_replay_that_cannot_be_made_says_why(toolcrib: Command, tools: str, tmp_path: Path) -> None:
    toolcrib("call", tools, "login", '{"user": "ann", "password": "x"}', "--yes", "--record", "a.db")
    (tmp_path / "wrong.toml").write_text("rule = 1", "utf-8")

    absent = toolcrib("replay", "no.db", "--tools", tools)
    unread = toolcrib("replay", "a.db", "--tools", tools, "--policy", "no.toml")
    wrong = toolcrib("replay", "a.db", "--tools", tools, "--policy", "wrong.toml")
    none = toolcrib("replay", "a.db")
    policy_alone = toolcrib("replay", "a.db", "--policy", "new.toml")
    secret = toolcrib("replay", "a.db", "--tools", tools)

    assert (absent.exit_code, unread.exit_code, wrong.exit_code, none.exit_code) == (2, 2, 2, 2)
    said = " ".join(policy_alone.stderr.replace("│", " ").split())
    assert "a policy goes by what the tools' code declares" in said
    assert "toolcrib replay a.db --policy new.toml --tools TARGET" in said
    assert "there is no such file" in absent.stderr
    assert "cannot read the policy no.toml" in unread.stderr
    assert "`rule` is unknown" in wrong.stderr
    assert secret.exit_code == 0
    assert secret.stderr == "1 call of 1 run: 0 would differ, 1 undecided\n"
    assert "the record hides a secret in its arguments (password)" in secret.stdout


def test_all_three_read_a_server(toolcrib: Command, tools: str, postgres: Postgres) -> None:
    url = postgres.url("cli_runs")
    for number in (1, 2):
        toolcrib("call", tools, "add", f'{{"a": {number}}}', "--record", url)

    (latest, _, *_) = json.loads(toolcrib("runs", url, "--since", "1h", "--tool", "add", "--json").stdout)
    tree = json.loads(toolcrib("trace", latest["id"], "--database", url, "--json").stdout)
    same = toolcrib("replay", url, "--tools", tools, "--limit", "2", "--since", "1h")
    absent = toolcrib("trace", "nothing", "--database", url)

    assert (latest["calls"], tree["inside"][0]["name"]) == ({"completed": 1}, "add")
    assert (same.exit_code, same.stderr) == (0, "2 calls of 2 runs: 0 would differ\n")
    assert absent.exit_code == 2
    assert postgres.password not in absent.stderr
