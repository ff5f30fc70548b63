"""Rules of approvers: which calls each is about, and which rules are refused when they are made."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.approvers import ApproverRule, ApproverRules, Delegation, Groups, load_rules, read_rules
from toolcrib.calls import Outcome
from toolcrib.errors import PolicyError
from toolcrib.tools import BaseTool, ez_tool, tool_input

GROUPS = Groups({"finance": ["bob", "cid", "dee"], "legal": ["cid"]})


@ez_tool(tags={"money"}, effect="spend")
async def refund(amount: Any = None, order: int = 7) -> str:
    """Refund an order."""
    return f"refunded {amount}"


@ez_tool(effect="fetch", tags={"quiet"})
async def find(order: int = 7) -> str:
    """Find an order."""
    return "found"


@ez_tool
async def note(order: int = 7) -> str:
    """Note something."""
    return "noted"


class Remote(BaseTool):
    """A tool of a server."""

    name, description, input_model = "remote", "Do it there.", tool_input("RemoteInput")

    def get_identity(self) -> dict[str, Any]:
        return {"url": "https://shop.example.org/mcp"}

    async def call(self, ctx: Any) -> str:
        return "done"


def rule_of(**given: Any) -> ApproverRule:
    return ApproverRule(**{"name": "x", "of": "finance", **given})


async def outcome_of(rule: ApproverRule, tool: str = "refund", principal: str = "ada", **arguments: Any) -> Outcome:
    tools = Toolset([refund, find, note, Remote()]).with_gates(ApproverRules([rule], GROUPS))
    return await Pipeline(tools).run(ToolCall(tool, arguments), Run(principal=principal))


async def fitting(rule: ApproverRule, *tools: str) -> list[str]:
    return [tool for tool in tools if isinstance(await outcome_of(rule, tool), Suspended)]


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, ["refund", "find", "note", "remote"]),
        ({"tools": ["ref*", "note"]}, ["refund", "note"]),
        ({"tags": ["money", "quiet"]}, ["refund", "find"]),
        ({"tags": ["mon*"]}, ["refund"]),
        ({"effects": ["spend"]}, ["refund", "note", "remote"]),
        ({"servers": ["https://shop.*"]}, ["remote"]),
        ({"principals": ["bob"]}, []),
        ({"principals": ["a*"], "tools": ["find"]}, ["find"]),
        ({"over": {"amount": 10}}, ["refund"]),
        ({"tools": ["refund"], "tags": ["quiet"]}, []),
    ],
)
async def test_a_call_fits_that_has_all_that_a_rule_names(about: dict[str, Any], expected: list[str]) -> None:
    rule = ApproverRule(name="x", of="finance", **about)

    assert await fitting(rule, "refund", "find", "note", "remote") == expected


@pytest.mark.parametrize(
    ("amount", "over", "up_to"),
    [
        *[(1000, False, True), (1000.01, True, False), ("1000.5", True, False), (0, False, True), ("12", False, True)],
        *[(None, True, True), ("1e9", True, True), (-5000, True, True), (True, True, True), ([5], True, True)],
        *[
            ("9" * 50, True, True),
            ("\uff11\uff10\uff10\uff10", True, True),
            (1e300, True, True),
            ("5000 EUR", True, True),
        ],
    ],
)
async def test_an_amount_that_is_no_plain_number_is_under_every_rule(amount: Any, over: bool, up_to: bool) -> None:
    high = ApproverRule(name="over", of="finance", over={"amount": 1000})
    low = ApproverRule(name="up to", of="finance", up_to={"amount": 1000})

    found = [isinstance(await outcome_of(rule, amount=amount), Suspended) for rule in (high, low)]

    assert found == [over, up_to]


async def test_a_rule_that_does_not_ask_says_who_answers_where_another_gate_asks() -> None:
    rule = ApproverRule(name="staff", of="finance", asks=False)
    tools = Toolset([refund, find]).with_approval(names=["refund"]).with_gates(ApproverRules([rule], GROUPS))
    pipeline, run = Pipeline(tools), Run(principal="ada")

    found = await pipeline.run(ToolCall("find", {}), run)
    refunded = await pipeline.run(ToolCall("refund", {}), run)

    assert found.kind == "completed"
    assert isinstance(refunded, Suspended)
    assert [one.rule for one in refunded.request.required] == ["staff"]
    assert "rule: staff: 1 of finance (bob, cid, dee), not ada, who asked" in refunded.request.text()


# --- rules that are refused


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"of": {"finance": 4}}, "its groups have too few people for it: x: 4 of finance"),
        ({"of": {"finance": 3, "legal": 1}}, "too few people"),
        ({"of": "finanse"}, "there is no group 'finanse'"),
        ({"of": {}}, "of must be a group, or a number of people from 1 on"),
        ({"of": {"finance": 0}}, "of must be a group, or a number of people from 1 on"),
        ({"effects": ["loud"]}, "effect is"),
        ({"over": {"amount": -1}}, "the bound of `amount` must be a number of 0 or more, and is -1"),
        ({"over": {"amount": float("nan")}}, "the bound of `amount`"),
        ({"name": " "}, "the name is empty"),
    ],
)
def test_a_rule_that_no_one_can_meet_is_refused_when_it_is_made(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ApproverRules([rule_of(**rule)], GROUPS)


@pytest.mark.parametrize("part", ["tools", "tags", "effects", "servers", "principals"])
def test_a_text_in_place_of_a_list_is_refused(part: str) -> None:
    with pytest.raises(TypeError, match=rf"{part} is a list, as in {part}=\['refund'\]"):
        rule_of(**{part: "refund"})


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"remind": HOUR, "expires": HOUR}, "'x': remind is after 1 hour, and a request expires after 1 hour"),
        ({"escalate": {2 * HOUR: "legal"}, "expires": HOUR}, "'x': escalate is after 2 hours, and .* expires after 1"),
        ({"escalate": {HOUR: "gone"}}, "'x': escalate: there is no group 'gone'; give it members or from_login"),
        ({"escalate": {HOUR: "finance"}}, "'x': escalate names 'finance', which may approve anyway; name another"),
        ({"of": "*", "escalate": {HOUR: "finance"}}, "which may approve anyway"),
        ({"remind": timedelta(0)}, "'x': remind must be more than no time"),
        ({"escalate": {-HOUR: "legal"}}, "'x': escalate must be more than no time"),
    ],
)
def test_a_reminder_or_an_escalation_that_cannot_come_is_refused(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ApproverRules([rule_of(**rule)], GROUPS)


@pytest.mark.parametrize("rule", [{"remind": 30}, {"escalate": {"1h": "legal"}}])
def test_a_time_that_is_no_timedelta_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="must be a timedelta"):
        rule_of(**rule)


def test_a_group_without_a_time_is_no_escalation() -> None:
    with pytest.raises(TypeError, match="escalate is 'legal'; give a group for each time, as in escalate="):
        rule_of(escalate="legal")


def test_what_is_no_rule_is_refused() -> None:
    with pytest.raises(TypeError, match="rules must be a list of rules"):
        ApproverRules(cast("Any", rule_of()))


def test_an_id_is_of_one_person() -> None:
    with pytest.raises(ValueError, match="U1 is an id of ann, and of bob"):
        Groups({}, people={"ann": ["U1"], "bob": ["U1"]})


@pytest.mark.parametrize("members", [["ann"], "finance"])
def test_members_are_given_by_group(members: Any) -> None:
    with pytest.raises(TypeError, match=r"members is .*; give them by group: Groups\(\{'finance': \['ann'\]\}\)"):
        Groups(members)


async def test_a_call_that_nobody_could_approve_is_refused_and_says_why() -> None:
    rule = ApproverRule(name="contracts", of="legal")

    by_cid = await outcome_of(rule, principal="cid")
    nobody = await Pipeline(Toolset([refund]).with_gates(ApproverRules([rule], GROUPS))).run(ToolCall("refund", {}))

    assert (by_cid.kind, nobody.kind) == ("rejected", "rejected")
    assert "nobody can approve this. contracts: 1 of legal, not cid, who asked" in by_cid.text()
    assert "contracts: whoever asks may not approve it, and the run has no principal" in nobody.text()


# --- files

TEXT = """
from_login = ["board"]

[groups]
finance = ["bob@example.org", "cid@example.org"]

[people]
"bob@example.org" = ["U024BE7LH"]

[[rules]]
name = "refunds over 1,000"
tools = ["refund"]
over = { amount = 1000 }
of = { finance = 1, board = 1 }
"""


GIVEN = "rules = []\n[[delegate]]\nfrom = 'ann'\nto = 'bob'\nuntil = 2030-01-31"
TIMES = """
groups = { finance = ["ann"], managers = ["eve"], board = ["gil"] }

[[rules]]
name = "refunds"
of = "finance"
remind = "30m"
escalate = { 4h = "board", 1h = "managers" }

[[delegate]]
from = "ann"
to = "bob"
since = "2029-12-24T08:00:00+01:00"
until = UNTIL
"""


@pytest.mark.parametrize(
    "until", ["2030-01-31", '"2030-01-31"', "2030-01-31T00:00:00", '"2030-01-31T00:00"', "{utc}"], ids=range(5)
)
def test_a_file_has_the_times_and_delegations_that_python_has(tmp_path: Path, until: str) -> None:
    moment = datetime(2030, 1, 31).astimezone(UTC)
    path = tmp_path / "approvers.toml"
    path.write_text(TIMES.replace("UNTIL", until.format(utc=moment.isoformat())))

    rules = load_rules(path)

    since = datetime(2029, 12, 24, 7, tzinfo=UTC)
    assert rules.rules[0].remind == timedelta(minutes=30)
    assert dict(rules.rules[0].escalate) == {timedelta(hours=1): "managers", timedelta(hours=4): "board"}
    assert rules.groups.delegations == (Delegation("ann", "bob", moment, since),)


async def test_a_file_has_what_python_has(tmp_path: Path) -> None:
    (tmp_path / "approvers.toml").write_text(TEXT)
    (tmp_path / "approvers.json").write_text(json.dumps(load_as_dict()))

    loaded = [load_rules(tmp_path / name) for name in ("approvers.toml", "approvers.json")]

    for rules in (*loaded, read_rules(load_as_dict())):
        (rule,) = rules.rules
        assert (rule.name, rule.groups, rule.over) == (
            "refunds over 1,000",
            {"finance": 1, "board": 1},
            {"amount": 1000},
        )
        assert rules.groups.ids_of("U024BE7LH") == ("bob@example.org", "U024BE7LH")


def load_as_dict() -> dict[str, Any]:
    return tomllib.loads(TEXT)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules = 3", "`rules` must be tables, written [[rules]] (in JSON a list of objects), and not 3"),
        ("[[rules]]\nname = 'x'\ntool = ['a']", "rule 1: `tool` is unknown. Did you mean `tools`"),
        ("[[rules]]\nname = 'x'\ntools = 'a'", "rule 1: `tools`"),
        ("[[rules]]\nname = 'x'\nof = 'gone'", "there is no group 'gone'"),
        ("[[rules]]\ntools = ['a']", "rule 1: `name`: field required"),
        ("grups = {}\nrules = []", "`grups` is unknown. Did you mean `groups`"),
        ("rules = []\n[groups]\nf = 'ann'", "`groups.f`: input should be a valid list; got 'ann'; write [\"ann\"]"),
        ("rules = [", "it is not TOML"),
        ("[[rules]]\nname = 'x'\nremind = '2h'\nexpires = '1h'", "rule 1: ApproverRule 'x': remind is after 2 hours"),
        (
            "[[rules]]\nname = 'x'\nremind = 'soon'",
            "rule 1: `remind`: 'soon' is not a time: give a whole number and s,",
        ),
        ("[[rules]]\nname = 'x'\nescalate = {soon = 'f'}", "rule 1: `escalate`: 'soon' is not a time"),
        (
            "[[rules]]\nname = 'x'\nescalate = {1h = 'f'}",
            "ApproverRule 'x': escalate names 'f', which may approve anyway",
        ),
        ("[[rules]]\nname = 'x'\nescalate = 'f'", "rule 1: `escalate`: input should be a valid dictionary; got 'f'"),
        (GIVEN, "no group lists ann, who has no right to give"),
        (f"{GIVEN}\nfor = 'ever'", "delegate 1: `for` is unknown"),
        (GIVEN.replace("until", "untill"), "delegate 1: `untill` is unknown. Did you mean `until`"),
        (
            "rules = []\n[[delegate]]\nfrom = 'ann'\nto = 'bob'",
            "delegate 1: `until` is missing; it has from, to and until",
        ),
        (
            GIVEN.replace("2030-01-31", "'soon'"),
            "delegate 1: `until`: 'soon' is not a time; give a date, as 2030-01-31",
        ),
        (GIVEN.replace("2030-01-31", "3"), "delegate 1: `until`: 3 is not a time"),
        (GIVEN.replace("'bob'", "3"), "delegate 1: 3 is not the id of a person"),
        (GIVEN.replace("bob", "ann"), "delegate 1: Delegation: ann gives a right to themselves; name another person"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_field(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "approvers.toml"
    path.write_text(text)

    with pytest.raises(PolicyError) as raised:
        load_rules(path)

    assert str(path) in str(raised.value)
    assert problem in str(raised.value)


def test_a_file_that_has_a_rule_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "approvers.json"
    path.write_text('{"rules": [{"name": "x"}], "rules": []}')

    with pytest.raises(PolicyError, match="rules: sent more than once"):
        load_rules(path)


async def test_a_file_is_read_anew_when_it_has_changed_and_one_that_is_wrong_then_stops_calls(tmp_path: Path) -> None:
    path = tmp_path / "approvers.toml"
    path.write_text(TEXT)
    pipeline, run = Pipeline(Toolset([refund]).with_gates(load_rules(path))), Run(principal="ada")

    before = await pipeline.run(ToolCall("refund", {"amount": 500}), run)
    write_new(path, TEXT.replace("1000 }", "100 }"))
    after = await pipeline.run(ToolCall("refund", {"amount": 500}), run)
    write_new(path, "rules = [")
    broken = await pipeline.run(ToolCall("refund", {"amount": 500}), run)
    path.unlink()
    gone = await pipeline.run(ToolCall("refund", {"amount": 500}), run)

    assert [one.kind for one in (before, after, broken, gone)] == ["completed", "suspended", "failed", "failed"]


def write_new(path: Path, text: str) -> None:
    """Write a file in place of another, as editors do."""
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


@pytest.mark.parametrize(("text", "hours"), [("2h", 2), ("90m", 1.5), ("7d", 168), (7200, 2)])
def test_the_time_of_a_rule_is_written_as_people_write_it(text: str | int, hours: float) -> None:
    rules = read_rules({"rules": [{"name": "x", "expires": text}]}).rules

    assert rules[0].expires == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["soon", "2", "h", "-2h", "0h", "2y", "٢h", 0])
def test_a_time_that_is_none_is_refused_with_its_rule(text: Any) -> None:
    with pytest.raises(PolicyError, match=r"rule 1: `expires`|ApproverRule 'x': expires"):
        read_rules({"rules": [{"name": "x", "expires": text}]})
