"""The section of a file of servers that holds for the gateway as a whole, and for each server by default."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp_client.servers import outcome_of
from tests.gateway.test_servers import ENVIRONMENT, small
from toolcrib.adapters.mcp_client import server_of
from toolcrib.calls import Suspended
from toolcrib.errors import TargetError
from toolcrib.gateway import GatewayFile, GatewayOptions, read_gateway, toolset_of_file
from toolcrib.pipeline import Access, CallLimits, Channel, Run


def written(tmp_path: Path, section: Any, **servers: Any) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"toolcrib": section, "mcpServers": servers or {"small": small()}}), "utf-8")
    return path


def test_the_options_of_the_whole_are_read_with_paths_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("frozen = true\n", "utf-8")
    section = {
        "name": "desk",
        "instructions": "Be brief, ${WHO}.",
        "approvals": {
            "database": "${BASE:-toolcrib}.db",
            "wait": 20,
            "place": "https://console.example.org",
            "elicit_always": "8h",
        },
        "limits": {"total": 100, "per_tool": {"add": 3}, "concurrency": 4, "pending": 5},
        "record": "calls.jsonl",
        "telemetry": True,
        "errors": "masked",
        "provenance": "policy.toml",
    }
    servers = {"quiet": small(toolcrib={"record": False, "telemetry": False}), "loud": small()}

    file = read_gateway(written(tmp_path, section, **servers), {**ENVIRONMENT, "WHO": "Ann"})
    options = file.options

    assert (options.name, options.instructions) == ("desk", "Be brief, Ann.")
    assert (options.approvals.database, options.record) == (
        str(tmp_path / "toolcrib.db"),
        str(tmp_path / "calls.jsonl"),
    )
    assert (options.approvals.wait, options.approvals.place) == (20, "https://console.example.org")
    assert options.approvals.elicit_always == timedelta(hours=8)
    assert options.limits.of_calls == CallLimits(total=100, per_tool={"add": 3}, concurrency=4)
    assert (options.limits.pending, options.telemetry, options.errors) == (5, True, "masked")
    assert options.policy is not None
    assert options.policy.frozen
    assert file.unrecorded == file.untraced == {"quiet"}


def test_a_file_without_a_section_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"small": small()}}), "utf-8")

    database = str(tmp_path / "toolcrib.db")
    options = GatewayOptions.model_validate({"approvals": {"database": database}})
    assert read_gateway(path, ENVIRONMENT) == GatewayFile(options)


def test_a_database_may_be_a_url(tmp_path: Path) -> None:
    section = {"approvals": {"database": "postgresql://${WHO}@host/db"}, "record": True}

    options = read_gateway(written(tmp_path, section), {"WHO": "ann"}).options

    assert (options.approvals.database, options.record) == ("postgresql://ann@host/db", True)


async def test_each_server_has_the_defaults_where_it_says_nothing(tmp_path: Path) -> None:
    defaults = {"approval": True, "resources": False, "limits": {"timeout": 9, "max_result_chars": 7}}
    free = {"approval": False, "limits": {"timeout": 30}}
    path = written(tmp_path, {"defaults": defaults}, held=small(), free=small(toolcrib=free))
    tools = toolset_of_file(path, ENVIRONMENT)

    async with tools.open() as opened:
        held, done = await outcome_of(opened, "held_facts"), await outcome_of(opened, "free_facts")
        limits = [opened[name].max_result_chars for name in ("held_facts", "free_facts")]
        of = [server_of(tools, name) for name in ("held_facts", "free_facts", "facts")]

    assert isinstance(held, Suspended)
    assert not isinstance(done, Suspended)
    assert "held_read_today" not in opened
    assert limits == [7, 7]
    assert of == ["held", "free", None]


async def test_budgets_hold_for_all_processes_that_serve_the_file(tmp_path: Path) -> None:
    budgets = {
        "limits": [
            {"calls": 3, "per": "day", "by": ["principal", "group"]},
            {"spend": 10, "currency": "EUR", "tools": ["add"], "over": "ask"},
        ],
        "costs": {"add": {"argument": "a", "currency": "EUR"}},
        "groups": {"ann": "sales"},
    }
    path, found = written(tmp_path, {"budgets": budgets}), list[str]()

    for number in (6, 5, 4, 0):
        async with toolset_of_file(path, ENVIRONMENT).open() as opened:
            outcome = await outcome_of(opened, "add", run=Run(principal="ann"), a=number, b=1)
            found.append(outcome.request.reason if isinstance(outcome, Suspended) else outcome.kind)

    over = "`add` is over its limit: at most 10 EUR in all of add, of which 6 are used. It costs 5 EUR."
    assert (tmp_path / "usage.db").exists()
    assert found == ["completed", f"{over} Waiting does not help.", "completed", "completed"]


RULES = {
    "groups": {"finance": ["bob", "cid"]},
    "rules": [{"name": "large sums", "tools": ["add"], "over": {"a": 1000}, "of": "finance"}],
}


@pytest.mark.parametrize("in_file", [False, True])
async def test_rules_of_approvers_are_in_the_section_or_in_a_file_of_their_own(tmp_path: Path, in_file: bool) -> None:
    (tmp_path / "approvers.json").write_text(json.dumps(RULES), "utf-8")
    path = written(tmp_path, {"approvers": "approvers.json" if in_file else RULES})

    async with toolset_of_file(path, ENVIRONMENT).open() as opened:
        small, large = [await outcome_of(opened, "add", run=Run(principal="ada"), a=a, b=1) for a in (5, 5000)]

    assert small.kind == "completed"
    assert isinstance(large, Suspended)
    assert [one.text() for one in large.request.required] == ["large sums: 1 of finance (bob, cid), not ada, who asked"]


async def test_the_section_names_a_policy_in_cedar_by_its_path_by_the_file(tmp_path: Path) -> None:
    permit = 'permit (principal in Group::"finance", action == Action::"approve", resource);'
    (tmp_path / "approvers.cedar").write_text(permit)
    path = written(tmp_path, {"approvers": {"cedar": "approvers.cedar", "groups": {"finance": ["bob"]}}})

    async with toolset_of_file(path, ENVIRONMENT).open() as opened:
        outcome = await outcome_of(opened, "add", run=Run(principal="ada"), a=1, b=1)

    assert isinstance(outcome, Suspended)
    assert [one.text() for one in outcome.request.required] == ["policy 1: 1 of finance (bob), not ada, who asked"]


async def test_the_section_has_the_times_and_delegations_of_rules(tmp_path: Path) -> None:
    times = {"remind": "30m", "escalate": {"1h": "board"}, "expires": "2h"}
    given = {
        "groups": {"finance": ["bob"], "board": ["gil"]},
        "rules": [{"name": "sums", "of": "finance", **times}],
        "delegate": [{"from": "bob", "to": "dee", "until": "2130-01-31T00:00+00:00"}],
    }
    path = written(tmp_path, {"approvers": given})

    async with toolset_of_file(path, ENVIRONMENT).open() as opened:
        outcome = await outcome_of(opened, "add", run=Run(principal="ada"), a=1, b=1)

    assert isinstance(outcome, Suspended)
    (required,) = outcome.request.required
    assert (required.remind_after, required.escalation, required.expires_after) == (1800, ((3600.0, "board"),), 7200)
    assert required.delegations[0].text() == "dee for bob until 2130-01-31 00:00+00:00"


@pytest.mark.parametrize(
    ("approvers", "problem"),
    [
        ({"rules": [], "delegate": [{"from": "bob"}]}, "delegate 1: `to` is missing; it has from, to and until"),
        ("gone.toml", "gone.toml cannot be used: it cannot be read"),
        ({"rules": [{"name": "x", "of": "gone"}]}, "there is no group 'gone'"),
        ({"ruls": []}, "`ruls` is unknown. Did you mean `rules`"),
    ],
)
def test_rules_of_approvers_that_are_wrong_are_an_error(tmp_path: Path, approvers: Any, problem: str) -> None:
    path = written(tmp_path, {"approvers": approvers})

    with pytest.raises(TargetError, match=problem):
        toolset_of_file(path, ENVIRONMENT)


def test_a_database_of_budgets_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"budgets": {"database": "gone/usage.db", "limits": [{"calls": 1}]}})

    with pytest.raises(TargetError, match=r"`toolcrib\.budgets`: .*gone"):
        toolset_of_file(path, ENVIRONMENT)


async def test_labels_are_what_a_policy_goes_by_in_place_of_the_server_s_hints(tmp_path: Path) -> None:
    labels = {"add": {"effect": "send", "readers": ["ann"]}, "*": {"source": "trusted", "content": ["n"]}}
    path = written(tmp_path, {}, small=small(toolcrib={"labels": labels, "trusted": True}))

    async with toolset_of_file(path, ENVIRONMENT).open() as opened:
        add, facts = opened["add"].tool.options, opened["facts"].tool.options

    assert (add.effect, tuple(add.readers or ()), add.source) == ("send", ("ann",), "untrusted")
    assert (facts.source, tuple(facts.content)) == ("trusted", ("n",))


def test_a_limit_by_group_without_groups_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, {"budgets": {"limits": [{"calls": 1, "by": "group"}]}})

    with pytest.raises(TargetError, match=r"`toolcrib\.budgets`: .*no groups are given"):
        toolset_of_file(path, ENVIRONMENT)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"recrod": True}, "`toolcrib.recrod`: there is no such option. Did you mean `record`?"),
        ({"approvals": {"elicit_always": "soon"}}, "`toolcrib.approvals.elicit_always`: must be a time such as"),
        ({"approvals": {"elicit_always": 8}}, "`toolcrib.approvals.elicit_always`: must be a time such as"),
        ({"approvals": {"databse": "x"}}, "`toolcrib.approvals.databse`: there is no such option. Did you mean"),
        (
            {"limits": {"per_tool": {"ad*": 1}}},
            '`toolcrib.limits`: `per_tool` has the names of tools, and "ad*" is a pattern. Write "budgets": {"limits"',
        ),
        ({"limits": {"total": -1}}, "`toolcrib.limits.total`: input should be greater"),
        (
            {"defaults": {"tools": ["a"]}},
            "`toolcrib.defaults.tools`: it is an option of a server; write in the section",
        ),
        ({"approval": ["a"]}, "`toolcrib.approval`: it is an option of a server; write in the section"),
        ({"requires_approval": True}, '`toolcrib.requires_approval`: it is an option of a server; write in "defaults"'),
        ({"approval": "always"}, '`toolcrib.approval`: it is an option of a server; write in "defaults" here'),
        ({"interrupt_on": {"add": True, "facts": False}}, "`toolcrib.interrupt_on`: it is an option of a server; w"),
        ({"defaults": {"approval": "always"}}, "`toolcrib.defaults.approval`: input should be a valid boolean or"),
        ({"limits": {"timeout": 3}}, '`toolcrib.limits`: it is an option of a server; write in "defaults" here'),
        ({"defaults": {"aproval": True}}, "`toolcrib.defaults.aproval`: there is no such option. Did you mean `app"),
        ({"provenance": "gone.toml"}, "`toolcrib.provenance`: "),
        ({"name": 3}, "`toolcrib.name`: input should be a valid string; got 3"),
        ({"instructions": "${GONE}"}, "`toolcrib.instructions`: the environment variable GONE is not set"),
        ({"budgets": {"limits": [{}]}}, "`toolcrib.budgets.limits.0`: Limit: give calls or spend, and not both"),
        (
            {"budgets": {"limits": [{"calls": 1, "per": "min"}]}},
            "`toolcrib.budgets.limits.0.per`: input should be 'minute', 'hour' or 'day'",
        ),
        (
            {"budgets": {"limits": [{"calls": 1, "pr": "minute"}]}},
            "`toolcrib.budgets.limits.0.pr`: there is no such option. Did you mean `per`?",
        ),
        (
            {"budgets": {"costs": {"add": {"amount": 1, "currency": "EUR", "argumnt": "x"}}}},
            "`toolcrib.budgets.costs.add.argumnt`: there is no such option. Did you mean `argument` or",
        ),
        (
            {"budgets": {"limits": [{"spend": 1, "currency": "EUR", "per": "day"}]}},
            "`toolcrib.budgets`: the limit of 1 EUR a day counts nothing, as `costs` has none in EUR. Write",
        ),
        (
            {
                "budgets": {
                    "limits": [{"spend": 1, "currency": "EUR"}],
                    "costs": {"refund": {"argument": "cents", "currency": "cents"}},
                }
            },
            "`toolcrib.budgets`: the limit of 1 EUR in all counts nothing, as `costs` has none in EUR; the costs",
        ),
        ({"budgets": {"costs": {"add": {"currency": "EUR"}}}}, "`toolcrib.budgets.costs.add`: it has amount or arg"),
        ([], "`toolcrib`: it must be an object of options, and is []. There are 21"),
        (
            {"approvals": "elicit"},
            "`toolcrib.approvals`: it must be an object of options, and is 'elicit'. There are: `by`",
        ),
        (
            {"approvals": {"wait": "2m"}},
            "`toolcrib.approvals.wait`: input should be a valid number; got '2m'; write 120",
        ),
        ({"limits": {"per_tool": "3"}}, "`toolcrib.limits.per_tool`: input should be a valid integer or a valid dict"),
        *(
            (
                {"budgets": {"limits": [{"calls": 1, "by": word}]}},
                "`toolcrib.budgets.limits.0.by`: input should be 'tool', 'principal', 'group', 'server', 'run' or "
                f"'conversation' or a valid list; got '{word}'{mend}",
            )
            for word, mend in {
                "user": '; write "principal"',
                "Principal": '; write "principal"',
                "session": '; write "conversation"',
                "sever": '; write "server"',
                "moon": "",
            }.items()
        ),
        (
            {"budgets": {"limits": [{"calls": 1, "per": "days"}]}},
            "`toolcrib.budgets.limits.0.per`: input should be 'minute', 'hour' or 'day' or a valid integer; got 'days'",
        ),
        (
            {"budgets": {"limits": [{"calls": 1, "pr": "day"}]}},
            "`toolcrib.budgets.limits.0.pr`: there is no such option. Did you mean `per`?",
        ),
        (
            {"budgets": {"costs": {"amount": {"amout": 1, "currency": "EUR"}}}},
            "`toolcrib.budgets.costs.amount.amout`: there is no such option. Did you mean `amount`?",
        ),
    ],
)
def test_a_mistake_names_the_field_and_the_mend(tmp_path: Path, section: Any, problem: str) -> None:
    path = written(tmp_path, section)

    with pytest.raises(TargetError) as caught:
        read_gateway(path, ENVIRONMENT)

    assert f"`{path}`: {problem}" in str(caught.value)


@pytest.mark.parametrize(
    ("beside", "given", "meant"),
    [
        (beside, given, meant)
        for beside in (False, True)
        for given, meant in (
            ("always", "true"),
            ("unless_readonly", '"unless_read_only"'),
            (["files_delete"], 'of the server `files`, which has its tools without a prefix: {"approval": ["delete"]}'),
            (
                ["files_delete", "m_send", "facts"],
                'of the server `files`, which has its tools without a prefix: {"approval": ["delete"]}; and of the '
                'server `mail`, which has its tools without a prefix: {"approval": ["send"]}; and of the server, which '
                'has its tools without a prefix: {"approval": ["facts"]}',
            ),
        )
    ],
)
def test_approval_in_the_wrong_place_is_written_as_the_right_one_has_it(
    tmp_path: Path, beside: bool, given: Any, meant: str
) -> None:
    path, option = tmp_path / "mcp.json", {"approval": given}
    servers = {"files": small(), "mail": small(toolcrib={"prefix": "m_"})}
    path.write_text(json.dumps({"mcpServers": servers, **(option if beside else {"toolcrib": option})}), "utf-8")

    with pytest.raises(TargetError, match=re.escape(meant)):
        read_gateway(path, ENVIRONMENT)


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("interrupt_on", {"add": True, "facts": False, "sum": {"allowed_decisions": ["approve"]}}, '["add", "sum"]'),
        ("interrupt_on", {"always": {"tool_names": ["add"]}}, "..."),
        ("requireApproval", "never", "false"),
    ],
)
def test_approval_by_another_name_is_told_by_ours(tmp_path: Path, name: str, given: Any, meant: str) -> None:
    for section, entry in (({name: given}, small()), ({}, small(**{name: given}))):
        path = written(tmp_path, section, small=entry)
        with pytest.raises(TargetError, match=re.escape(f'{{"approval": {meant}}}')):
            read_gateway(path, ENVIRONMENT)


def test_so_does_a_wrong_policy(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('[[rules]]\ntool = "pay"\neffekt = "spend"\n', "utf-8")

    with pytest.raises(TargetError, match="rule 1: `effekt` is unknown"):
        read_gateway(written(tmp_path, {"provenance": "policy.toml"}), ENVIRONMENT)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"add": {"efect": "send"}}, "`toolcrib.labels.add.efect`: there is no such option. Did you mean `effect`?"),
        ({"add": {"effect": "burn"}}, "`toolcrib.labels.add.effect`: input should be 'none', 'fetch'"),
    ],
)
def test_a_wrong_label_is_an_error(tmp_path: Path, labels: Any, problem: str) -> None:
    with pytest.raises(TargetError) as caught:
        toolset_of_file(written(tmp_path, {}, small=small(toolcrib={"labels": labels})), ENVIRONMENT)

    assert f"the server `small`: {problem}" in str(caught.value)


async def test_a_label_for_a_tool_that_is_not_there_makes_the_listing_unusable(tmp_path: Path) -> None:
    path = written(tmp_path, {}, small=small(toolcrib={"labels": {"gone": {"effect": "none"}}}))

    with pytest.raises(Exception, match="`labels` names it"):
        async with toolset_of_file(path, ENVIRONMENT).open():
            pass


@pytest.mark.parametrize(
    ("claims", "kind"),
    [
        ({"groups": ["finance"]}, "completed"),
        ({"groups": "finance"}, "completed"),
        ({"groups": "sales"}, "failed"),
        ({"groups": ["sales", "owners"]}, "completed"),
        ({"groups": ["sales"]}, "failed"),
        ({"groups": ["Finance"]}, "failed"),
        ({"groups": {"finance": False}}, "failed"),
        ({"groups": 7}, "failed"),
        ({"roles": ["finance"]}, "failed"),
        ({}, "failed"),
        (None, "completed"),
    ],
)
async def test_tools_are_offered_to_groups(tmp_path: Path, claims: Any, kind: str) -> None:
    file = written(tmp_path, {"groups": {"add": ["finance", "owners"]}})
    access = None if claims is None else Access(frozenset(), claims)
    run = Run(principal="ann", channel=Channel(access=access))

    async with toolset_of_file(file, ENVIRONMENT).open(run.context()) as tools:
        outcome = await outcome_of(tools, "add", run=run, a=1, b=2)
        other = await outcome_of(tools, "facts", run=run)

    assert outcome.kind == kind, outcome
    assert other.kind == "completed", other


async def test_the_claim_of_the_groups_is_the_one_that_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, {"groups": {"*": "finance"}, "group_claim": "roles"})
    run = Run(principal="ann", channel=Channel(access=Access(frozenset(), {"roles": ["finance"], "groups": []})))

    async with toolset_of_file(file, ENVIRONMENT).open(run.context()) as tools:
        outcome = await outcome_of(tools, "add", run=run, a=1, b=2)

    assert outcome.kind == "completed", outcome
