"""`toolcrib runs` and `toolcrib trace`, from a shell's point of view."""

from __future__ import annotations

import json

from tests.cli.conftest import Command


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


def test_what_is_not_there_is_said(toolcrib: Command, tools: str) -> None:
    toolcrib("call", tools, "add", '{"a": 1}', "--record", "a.db")
    (run,) = json.loads(toolcrib("runs", "a.db", "--json").stdout)

    absent = toolcrib("runs", "no.db")
    none = toolcrib("runs", "a.db", "--tool", "buy")
    misspelt = toolcrib("trace", f"{run['id']}x", "--database", "a.db")
    unknown = toolcrib("trace", "zzz", "--database", "a.db")
    ambiguous = toolcrib("trace", "", "--database", "a.db")
    outcome = toolcrib("runs", "a.db", "--outcome", "lost")
    since = toolcrib("runs", "a.db", "--since", "soon")

    assert (absent.exit_code, none.exit_code, misspelt.exit_code, unknown.exit_code) == (2, 0, 2, 2)
    assert "the database no.db cannot be used: there is no such file" in absent.stderr
    assert none.stderr == "there is no such run in a.db\n"
    assert f"Did you mean {run['id']}?" in misspelt.stderr
    assert "`toolcrib runs` lists the runs" in unknown.stderr
    assert "Give more of the id" in ambiguous.stderr
    assert "none of completed, failed" in outcome.stderr.replace("\n", " ").replace("│ ", "")
    assert "is no time" in since.stderr
