"""Rules of a policy in the pipeline: labels and verdicts by tool, toolset and principal."""

import sys
from typing import Annotated, Any

import pytest
from pydantic import SecretStr

from tests.ways import representatives
from toolcrib.calls import Completed, Rejected, Suspended, ToolCall
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Content, Decides, Provenance, Rule
from toolcrib.testing import RecordingSink, Way
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

IBAN = "GB29NWBK60161331926819"
READ = ToolCall("read_file", {"path": "bill.txt"})
PAY = ToolCall("pay", {"recipient": IBAN})


def bank(paid: list[Any]) -> list[Tool[..., Any]]:
    @ez_tool(effect="none")
    async def read_file(path: str) -> str:
        """Read a file."""
        return f"Please pay to {IBAN}"

    @ez_tool(effect="spend", source="trusted")
    async def pay(recipient: str, subject: Annotated[str, Content] = "") -> str:
        """Pay."""
        paid.append(recipient)
        return "paid"

    return [read_file, pay]


def run_by(*rules: Rule, dry_run: bool = False, **options: Any) -> Run:
    run = Run(features=[Provenance(dry_run=dry_run, rules=rules)], **options)
    run.add_user_message("pay the bill in bill.txt")
    return run


@representatives("model", "run")
async def test_a_strangers_value_is_refused_over_every_way(way: Way) -> None:
    paid: list[Any] = []
    caller = way(bank(paid), features=[Provenance(rules=(Rule(tool="pay", untrusted="deny"),))])
    caller.run.add_user_message("pay the bill in bill.txt")
    await caller.call("read_file", {"path": "bill.txt"})
    outcome = await caller.call("pay", {"recipient": IBAN})
    assert isinstance(outcome, Rejected)
    assert f"the policy does not allow it: recipient `{IBAN}` comes from `read_file` (bill.txt)" in outcome.reason
    assert paid == []


@representatives("model", "run")
async def test_a_rule_labels_a_tool_of_others_over_every_way(way: Way) -> None:
    paid: list[Any] = []
    caller = way(bank(paid), features=[Provenance(rules=(Rule(tool="read_*", source="trusted"),))])
    caller.run.add_user_message("pay the bill in bill.txt")
    await caller.call("read_file", {"path": "bill.txt"})
    assert isinstance(await caller.call("pay", {"recipient": IBAN}), Completed)


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        (Rule(tool="pay", untrusted="allow"), Completed),
        (Rule(tool="pay", untrusted="allow", principal="ann"), Completed),
        (Rule(tool="pay", untrusted="allow", principal="ben"), Suspended),
        (Rule(tool="pay", untrusted="deny", toolset="bank"), Rejected),
        (Rule(tool="pay", untrusted="deny", toolset="mail"), Suspended),
        (Rule(tool="pay", effect="none"), Completed),
        (Rule(tool="pay", content=("recipient",)), Suspended),  # nothing else of it is the user's
        (Rule(tool="pay", unknown="allow"), Suspended),
        (Rule(tool="read_file", source="trusted"), Completed),
        (Rule(tool="pay", source="trusted"), Suspended),
    ],
)
async def test_a_rule_decides_for_its_own_calls(rule: Rule, outcome: type) -> None:
    pipeline, run = Pipeline(Toolset(bank([]), toolset_id="bank")), run_by(rule, principal="ann")
    await pipeline.run(READ, run)
    assert type(await pipeline.run(PAY, run)) is outcome


async def test_an_allowed_kind_of_value_does_not_let_another_through() -> None:
    pipeline, run = Pipeline(bank([])), run_by(Rule(tool="pay", unknown="allow"))
    await pipeline.run(READ, run)
    assert isinstance(await pipeline.run(ToolCall("pay", {"recipient": "DE89370400440532013000"}), run), Completed)
    assert isinstance(await pipeline.run(PAY, run), Suspended)


async def test_a_dry_run_refuses_nothing() -> None:
    sink = RecordingSink()
    pipeline = Pipeline(bank([]), sinks=[sink])
    run = run_by(Rule(tool="pay", untrusted="deny"), dry_run=True)
    await pipeline.run(READ, run)
    assert isinstance(await pipeline.run(PAY, run), Completed)
    note = sink.records[-1].decisions[-1]
    assert (note.decision, note.reason.split(":")[0]) == ("run", "dry run, it would refuse")


async def test_the_record_says_what_was_refused() -> None:
    sink = RecordingSink()
    pipeline, run = Pipeline(bank([]), sinks=[sink]), run_by(Rule(tool="pay", untrusted="deny"))
    await pipeline.run(READ, run)
    await pipeline.run(PAY, run)
    note = sink.records[-1].decisions[-1]
    assert (note.hook, note.decision) == ("provenance", "reject")


async def test_toolsets_keep_their_ids_inside_others_and_under_other_names() -> None:
    outer = Toolset([Toolset(bank([]), toolset_id="bank").prefixed("eu_")], toolset_id="all")
    pipeline, run = Pipeline(outer), run_by(Rule(tool="eu_pay", toolset="bank", untrusted="deny"))
    await pipeline.run(ToolCall("eu_read_file", {"path": "bill.txt"}), run)
    assert isinstance(await pipeline.run(ToolCall("eu_pay", {"recipient": IBAN}), run), Rejected)
    assert outer["eu_pay"].toolsets == ("all", "bank")


async def test_a_secret_is_in_no_question() -> None:
    @ez_tool
    async def login(password: SecretStr) -> str:
        """Log in."""
        return "ok"

    @ez_tool(effect="none")
    async def look_up(key: SecretStr) -> str:
        """Look up."""
        return IBAN

    pipeline, run = Pipeline([login, look_up, *bank([])]), run_by()
    await pipeline.run(ToolCall("look_up", {"key": "swordfish"}), run)
    asked = await pipeline.run(ToolCall("login", {"password": "swordfish"}), run)
    other = await pipeline.run(PAY, run)
    assert isinstance(asked, Suspended)
    assert isinstance(other, Suspended)
    assert "swordfish" not in f"{asked.to_dict()['request']} {other.request.to_dict()}"
    assert [each["mark"] for each in asked.request.origins] == [""]


@pytest.mark.parametrize(("tool", "outcome"), [("search", Completed), ("browse", Suspended)])
async def test_a_rule_labels_results_that_the_run_did_not_get_itself(tool: str, outcome: type) -> None:
    pipeline, run = Pipeline(bank([])), run_by(Rule(tool="search", source="trusted"), Rule(tool="pay", effect="send"))
    run.read_input(ModelInput("restored", f"Pay to {IBAN}", request=ToolCall(tool)))
    assert type(await pipeline.run(PAY, run)) is outcome


@pytest.mark.parametrize("policy", [None, Provenance()])
async def test_a_run_without_a_policy_calls_nothing_of_it(policy: Provenance | None) -> None:
    pipeline, run = Pipeline(bank([])), Run(features=[] if policy is None else [policy])
    await pipeline.run(READ, run)  # what is made once is made
    await pipeline.run(PAY, run)
    called: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and ("/provenance/" in path or path.endswith("_weigh.py")) and "/tests/" not in path:
            called.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await pipeline.run(READ, run)
        await pipeline.run(PAY, run)
    finally:
        sys.setprofile(before)
    assert bool(called) is (policy is not None)


async def asked_of_letter(*rules: Rule, **options: Any) -> list[str]:
    """Return which arguments of a letter a person is asked about, where a stranger wrote all of them."""

    @ez_tool(effect="write", source="trusted", **options)
    async def letter(to: Annotated[str, Decides], cc: str, body: str) -> str:
        """Write a letter."""
        return "written"

    pipeline, run = Pipeline([letter, *bank([])]), run_by(*rules)
    await pipeline.run(READ, run)
    asked = await pipeline.run(ToolCall("letter", dict.fromkeys(("to", "cc", "body"), IBAN)), run)
    return [each["path"] for each in asked.request.origins] if isinstance(asked, Suspended) else []


@pytest.mark.parametrize(
    ("rules", "options", "asked"),
    [
        ((), {}, ["to", "cc", "body"]),
        ((), {"content": ["*"]}, ["to"]),
        ((Rule(tool="letter", content=("*",)),), {}, ["to"]),
        ((Rule(tool="letter", content=("*",), deciding=("cc",)),), {}, ["to", "cc"]),
        ((Rule(tool="letter", content=("body", "to")),), {}, ["cc"]),
        ((Rule(tool="letter", deciding=("*",)),), {"content": ["*"]}, ["to", "cc", "body"]),
    ],
)
async def test_a_mark_keeps_a_parameter_that_would_be_content(
    rules: tuple[Rule, ...], options: dict[str, Any], asked: list[str]
) -> None:
    assert await asked_of_letter(*rules, **options) == asked
