"""`approvals`: requests listed and answered from another process than the one that asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.approvals.expired import has_expired
from tests.cli.conftest import Command, Keep
from tests.postgres import Postgres
from toolcrib._run_sync import run_sync
from toolcrib.approvals import PostgresApprovalStore, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Delegation, Denial, Done, Grant, Identity, RequiredApprovers, now


def test_pending_requests_are_listed_a_line_each(toolcrib: Command, keep: Keep) -> None:
    keep("ask_1a", principal="ann", created_at=now() - timedelta(minutes=3))
    keep("ask_2b", arguments={"item": "a\nb" + "c" * 200, "card": "[redacted]"})
    toolcrib("approvals", "deny", "--yes", "2b")

    pending, everything = toolcrib("approvals", "list"), toolcrib("approvals", "list", "--all")

    assert re.fullmatch(
        r'id +tool +since +for +state +arguments *\nask_1a +buy +3 min +ann +pending +item="tea" *\n', pending.stdout
    )
    assert re.search(r"^ask_2b +buy +\d+ s +- +denied +ann \(token\) +- ", everything.stdout, re.MULTILINE)
    assert "c" * 60 not in "".join(everything.stdout.split())


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("which", [(), ("--all",)])
def test_a_list_shows_the_arguments_on_a_narrow_screen_too(
    toolcrib: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch, columns: int, which: tuple[str, ...]
) -> None:
    keep("ask_1a", principal="somebody@example.org", arguments={"item": "tea " * 12})
    keep("ask_2b", principal="somebody@example.org", arguments={"item": "rice"})
    toolcrib("approvals", "deny", "--yes", "2b")
    monkeypatch.setenv("COLUMNS", str(columns))

    lines = toolcrib("approvals", "list", *which).stdout.splitlines()

    assert max(map(len, lines)) <= columns
    assert len(lines) <= 6
    assert ("id" in lines[0], "state" in lines[0], "arguments" in lines[0]) == (True, True, True)
    assert lines[1].startswith("ask_1a")
    assert ('item="rice"' in "".join(lines)) is bool(which)


def test_a_list_is_not_cut_where_no_screen_says_how_wide_it_is(
    toolcrib: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(principal="somebody.with.a.long.name@departments.example.org", arguments={"item": "x" * 50})

    piped = toolcrib("approvals", "list").stdout.splitlines()
    monkeypatch.setenv("COLUMNS", "60")
    narrow = toolcrib("approvals", "list").stdout.splitlines()

    assert len(piped) == 2
    assert (
        piped[1]
        .rstrip()
        .endswith('somebody.with.a.long.name@departments.example.org  pending  item="' + "x" * 50 + '"')
    )
    assert max(map(len, narrow)) <= 60


def test_a_list_for_programs_is_one_json_document(toolcrib: Command, keep: Keep) -> None:
    keep("ask_1a", requested={"item": "coffee"})

    (entry,) = json.loads(toolcrib("approvals", "list", "--json").stdout)

    assert (entry["id"], entry["state"], entry["answer"]) == ("ask_1a", "pending", None)
    assert entry["changes"] == ['item: "coffee" -> "tea"']


def test_a_request_is_shown_whole_with_its_answer(toolcrib: Command, keep: Keep) -> None:
    keep("ask_1a", requested={"item": "coffee"}, metadata={"shop": "corner"}, reason="it costs")
    toolcrib(
        "approvals", "approve", "--yes", "ask_1a", "--by", "ann", "--message", "fine", "--arguments", '{"item": "milk"}'
    )

    shown = toolcrib("approvals", "show", "1a").stdout

    assert shown.startswith(
        'buy needs approval: it costs\n  item = "tea"\nchanged since the model asked:\n'
        '  item: "coffee" -> "tea"\nshop: corner\n\nid '
    )
    for line in (
        r"state +approved",
        r"digest +d{64}",
        r"approved by +ann \(token\)",
        r"message +fine",
        r'arguments +item="milk"',
    ):
        assert re.search(f"^{line}$", shown, re.MULTILINE), line


def test_an_approval_carries_what_the_person_added(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant]
) -> None:
    keep("ask_1a")

    done = toolcrib(
        "approvals",
        "approve",
        "--yes",
        "ask_1a",
        "--by",
        "ann",
        "--arguments",
        '{"item": "milk"}',
        "--input",
        "x",
        "--expires",
        "2h",
    )

    assert (done.exit_code, done.stdout) == (0, "approved `buy`, as ann (token) (ask_1a)\n")
    given = answer_to("ask_1a")
    assert (given.override_args, given.user_input, given.scope) == ({"item": "milk"}, "x", "once")
    assert given.expires_at is not None
    assert timedelta(hours=1.9) < given.expires_at - now() < timedelta(hours=2)


def test_always_stands_until_it_is_taken_back(toolcrib: Command, keep: Keep, tmp_path: Path) -> None:
    keep("ask_1a")
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")

    toolcrib("approvals", "approve", "--yes", "1a", "--by", "ann", "--always", "--scope", "arguments")

    assert [grant.scope for grant in run_sync(store.standing())] == ["arguments"]
    assert toolcrib("approvals", "revoke", "1a").stdout == "took back what ann (token) approved for `buy`\n"
    assert run_sync(store.standing()) == ()
    assert toolcrib("approvals", "revoke", "1a").exit_code == 1


def test_always_is_for_the_values_of_others_where_these_are_asked_about(
    toolcrib: Command, keep: Keep, tmp_path: Path
) -> None:
    keep("ask_1a", origins=({"path": "item", "value": "tea", "why": "is a stranger's", "mark": "m1"},))
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")

    toolcrib("approvals", "approve", "--yes", "1a", "--always")

    assert [(grant.scope, grant.values) for grant in run_sync(store.standing())] == [("values", ("m1",))]
    assert "always, with these values of others" in toolcrib("approvals", "show", "1a").stdout


@pytest.mark.parametrize("answer", [["approve"], ["deny"], ["done", "--result", '"tea"']])
def test_without_a_terminal_nothing_is_answered_unless_the_command_says_yes(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant], answer: list[str]
) -> None:
    keep("ask_1a", in_doubt=True)

    refused = toolcrib("approvals", *answer, "1a")
    unanswered = answer_to("ask_1a")
    taken = toolcrib("approvals", *answer, "1a", "-y")

    assert (refused.exit_code, refused.stdout, unanswered) == (2, "", None)
    assert 'item = "tea"' in refused.stderr
    assert "there is no terminal to confirm it on. Add --yes" in refused.stderr
    assert (taken.exit_code, taken.stderr) == (0, "")


def test_an_answered_request_counts_where_the_beginning_of_an_id_is_looked_for(toolcrib: Command, keep: Keep) -> None:
    keep("ask_0123456789ab1")
    keep("ask_0123456789ab2")
    toolcrib("approvals", "deny", "--yes", "0123456789ab1")

    assert "2 requests begin with 0123456789ab" in toolcrib("approvals", "approve", "--yes", "0123456789ab").stderr
    assert toolcrib("approvals", "approve", "--yes", "0123456789ab2").exit_code == 0


def test_a_denial_tells_the_model_why(toolcrib: Command, keep: Keep, answer_to: Callable[[str], Denial]) -> None:
    keep("ask_1a")

    done = toolcrib("approvals", "deny", "--yes", "ask_1a", "--message", "too dear", "--json")

    assert json.loads(done.stdout)["state"] == "denied"
    assert (answer_to("ask_1a").message, answer_to("ask_1a").by) == ("too dear", "ann (token)")


def test_an_approval_that_expired_unused_is_answered_again(
    toolcrib: Command, keep: Keep, tmp_path: Path, answer_to: Callable[[str], Grant]
) -> None:
    store, request = SqliteApprovalStore(tmp_path / "toolcrib.db"), keep("ask_1a")
    run_sync(has_expired(lambda until: store.answer(request.grant("ann", expires_at=until))))

    listed, done = (
        toolcrib("approvals", "list", "--all"),
        toolcrib("approvals", "approve", "--yes", "1a"),
    )

    assert "expired" in listed.stdout
    assert (done.exit_code, answer_to("ask_1a").by) == (0, "ann (token)")


def test_a_request_that_its_rule_let_expire_is_listed_so_and_not_answered_any_more(
    toolcrib: Command, keep: Keep
) -> None:
    rule = RequiredApprovers("tea", {"*": 1}, expires_after=3600.0)
    keep("ask_1a", required=(rule,), created_at=now() - timedelta(hours=2))

    pending, listed = toolcrib("approvals", "list"), toolcrib("approvals", "list", "--all")
    shown, late = toolcrib("approvals", "show", "1a"), toolcrib("approvals", "approve", "--yes", "1a")

    assert "ask_1a" not in pending.stdout
    assert "expired" in listed.stdout
    assert "tea (rule)" in shown.stdout
    assert late.exit_code == 1
    assert "expired at" in late.stderr


def test_a_call_in_doubt_is_given_its_result(toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant]) -> None:
    keep("ask_1a", in_doubt=True)
    listed, asked = toolcrib("approvals", "list").stdout, toolcrib("approvals", "show", "1a").stdout

    done = toolcrib(
        "approvals", "done", "--yes", "1a", "--result", '{"receipt": 12}', "--by", "ann", "--message", "looked it up"
    )

    assert asked.startswith("buy may have run already")
    assert re.search(r"^It was done: this is the result +toolcrib approvals done ID --result JSON$", asked, re.M)
    assert (" in doubt " in listed, re.search(r"^state +in doubt$", asked, re.MULTILINE) is not None) == (True, True)
    assert (done.exit_code, done.stdout) == (0, "done `buy`, as ann (token) (ask_1a)\n")
    assert (answer_to("ask_1a").done, answer_to("ask_1a").message) == (Done({"receipt": 12}), "looked it up")
    assert re.search(r'^result +\{"receipt": 12\}$', toolcrib("approvals", "show", "1a").stdout, re.MULTILINE)


def test_a_result_that_does_not_fit_the_tool_leaves_the_request_pending(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant]
) -> None:
    keep("ask_1a", in_doubt=True, returns={"type": "object", "properties": {"receipt": {"type": "integer"}}})

    refused = toolcrib("approvals", "done", "--yes", "1a", "--result", '{"receipt": "twelve"}')

    assert refused.exit_code == 2
    said = " ".join(re.sub("[│╭╰─╮╯]", "", refused.stderr).split())
    assert '`buy` cannot have this result: receipt: must be an integer; got "twelve"' in said
    assert answer_to("ask_1a") is None


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (
            ["show", "ask_9876543210ab"],
            2,
            "/toolcrib.db; `toolcrib approvals list` shows the pending ones",
        ),
        (["approve", ""], 2, "there is no request '', which is too short for the beginning of an id, in"),
        (["approve", "ask_"], 2, "there is no request 'ask_', which is too short for the beginning of an id, in"),
        (["approve", "0123456789a"], 2, "there is no request '0123456789a', which is too short"),
        (["approve", "0123456789ab"], 2, "2 requests begin with 0123456789ab: ask_0123456789ab1, ask_0123456789ab2"),
        (["approve", "2c"], 1, "the approval for `buy` cannot be used: the request ask_2c was answered before by ann"),
        (["deny", "2c"], 1, "the request ask_2c was answered before by ann"),
        (["approve", "1a", "--arguments", "[1]"], 2, "as one object"),
        (["approve", "1a", "--arguments", "{"], 2, "it is not JSON"),
        (["approve", "1a", "--arguments", '{"cents": 1, "cents": 2}'], 2, "cents: sent more than once"),
        (["approve", "1a", "--arguments", '{"card": "**********"}'], 2, "card: type the real value"),
        (["approve", "1a", "--always", "--input", "x"], 2, "are for one call"),
        (["approve", "1a", "--always", "--scope", "all"], 2, "not one of 'tool', 'arguments'"),
        (["approve", "1a", "-y", "--always", "--scope", "values"], 2, "asks about no values of others"),
        (["approve", "1a", "--expires", "soon"], 2, "'soon' is not a time"),
        (["approve", "1a", "--expires", "2001-01-01"], 2, "2001-01-01 is past"),
        (["done", "1a", "--yes", "--result", "7"], 1, "the call is not in doubt: it was not executed"),
        (["done", "1a", "--result", "{"], 2, "it is not JSON"),
        (["done", "1a", "--result", '{"a": 1, "a": 2}'], 2, "a: sent more than once"),
        (["done", "1a"], 2, "Missing option '--result'"),
        (["list", "--database", "gone.db"], 2, "/gone.db cannot be used: there is no such file"),
        (
            ["list", "--database", "tools.txt"],
            2,
            "the file is something else than a SQLite database",
        ),
        (
            ["list", "--database", "mysql://a:secret@b/c"],
            2,
            "mysql://a:***@b/c cannot be used: `mysql` is not a kind of database",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    toolcrib: Command, keep: Keep, tmp_path: Path, args: list[str], status: int, said: str
) -> None:
    (tmp_path / "tools.txt").write_text("no database, and long enough to be taken for one" * 100)
    for id in ("ask_1a", "ask_2c", "ask_0123456789ab1", "ask_0123456789ab2"):
        keep(id)
    toolcrib("approvals", "approve", "--yes", "2c", "--by", "ann")

    done = toolcrib("approvals", *args)

    assert done.exit_code == status
    assert said in " ".join(re.sub("[│╭╰─╮╯]", "", done.stderr).split())
    assert ("Traceback" in done.stderr, "secret" in done.stderr, done.stdout) == (False, False, "")


def test_arguments_that_do_not_fit_are_refused_and_the_request_waits_on(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None]
) -> None:
    keep(parameters={"type": "object", "properties": {"item": {"type": "string"}}, "additionalProperties": False})
    approve = ("approvals", "approve", "1a", "--yes", "--arguments")

    wrong = [toolcrib(*approve, text) for text in ('{"item": 7}', '{"itme": "milk"}')]

    assert [done.exit_code for done in wrong] == [2, 2]
    assert "`buy` cannot take these: item:" in " ".join(re.sub("[│╭╰─╮╯]", "", wrong[0].stderr).split())
    assert answer_to("ask_1a") is None
    assert toolcrib(*approve, '{"item": "milk"}').exit_code == 0


def test_the_environment_names_the_database(toolcrib: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    keep("ask_1a")
    Path("toolcrib.db").rename("other.db")
    monkeypatch.setenv("TOOLCRIB_DATABASE", "sqlite:///other.db")

    done = toolcrib("approvals", "list")

    assert "ask_1a" in done.stdout


def test_requests_on_a_postgres_server_are_answered(
    toolcrib: Command, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url("answered")
    store = PostgresApprovalStore(url)
    for id in ("ask_1a", "ask_2b", "ask_3c"):
        request = ApprovalRequest(id=id, call_id=f"call_{id}", tool="buy", arguments={"item": "tea"}, digest="d" * 64)
        run_sync(store.put(request))
    monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", run_sync(store.issue_token("ann")))

    one = toolcrib("approvals", "approve", "--yes", "1a", "--database", url)
    others = toolcrib("approvals", "approve", "--yes", "--tool", "buy", "--database", url)

    answers = [entry.answer for entry in run_sync(store.list())]
    store.close()
    assert (one.exit_code, others.exit_code) == (0, 0)
    assert [getattr(answer, "by", None) for answer in answers] == ["ann (token)"] * 3


def test_an_empty_list_says_where_it_looked(toolcrib: Command, keep: Keep, tmp_path: Path) -> None:
    keep("ask_1a")
    toolcrib("approvals", "approve", "--yes", "1a")

    done = toolcrib("approvals", "list")

    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "",
        f"there is no pending request in {tmp_path / 'toolcrib.db'}\n",
    )


@pytest.mark.parametrize(
    "args",
    [
        ["list"],
        ["list", "--all"],
        ["show", "0123456789ab"],
        ["show", "1"],
        ["approve", "0123456789ab"],
        ["deny", "--tool", "buy"],
        ["done", "0123456789ab", "--result", "1"],
    ],
    ids=" ".join,
)
def test_a_database_that_never_had_a_request_is_named_with_its_path(
    args: list[str], toolcrib: Command, tmp_path: Path
) -> None:
    SqliteApprovalStore(tmp_path / "tolcrib.db")

    done = toolcrib("approvals", *args, "--database", "tolcrib.db")

    said = " ".join(done.stderr.split())
    assert f"in {tmp_path / 'tolcrib.db'}, which has had none. Name the one that is meant with --database" in said


# --- who answers


@pytest.mark.parametrize("answer", [["approve"], ["approve", "--always"], ["done", "--result", '"tea"']])
@pytest.mark.parametrize("token", [None, "", "guessed"])
def test_a_command_that_a_model_could_run_approves_nothing(
    toolcrib: Command,
    keep: Keep,
    answer_to: Callable[[str], Grant],
    monkeypatch: pytest.MonkeyPatch,
    answer: list[str],
    token: str | None,
) -> None:
    keep("ask_1a", in_doubt=answer[0] == "done")
    monkeypatch.delenv("TOOLCRIB_APPROVER_TOKEN")
    if token is not None:
        monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", token)

    done = toolcrib("approvals", *answer, "1a", "--yes", "--by", "ann")

    assert (done.exit_code, answer_to("ask_1a")) == (2, None)
    assert "`toolcrib approvals token NAME` makes" in done.stderr


def test_such_a_command_makes_no_token_either(
    toolcrib: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keep("ask_1a")
    token = os.environ["TOOLCRIB_APPROVER_TOKEN"]
    monkeypatch.delenv("TOOLCRIB_APPROVER_TOKEN")

    made, ended = toolcrib("approvals", "token", "eve"), toolcrib("approvals", "token", "ann", "--revoke")

    assert (made.exit_code, made.stdout, ended.exit_code) == (2, "", 2)
    assert run_sync(SqliteApprovalStore(tmp_path / "toolcrib.db").holder_of(token)) == "ann"


def test_a_denial_needs_no_proof(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Denial], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep("ask_1a")
    monkeypatch.delenv("TOOLCRIB_APPROVER_TOKEN")

    toolcrib("approvals", "deny", "1a", "--yes", "--by", "ben")

    assert answer_to("ask_1a").by == "ben"


def test_a_holder_of_a_token_is_no_other_and_may_give_one_to_another(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keep("ask_1a")
    refused = toolcrib("approvals", "approve", "1a", "--yes", "--by", "ben")
    made = toolcrib("approvals", "token", "ben")
    monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", made.stdout.strip())
    done = toolcrib("approvals", "approve", "1a", "--yes", "--by", "ben")
    ended = toolcrib("approvals", "token", "ben", "--revoke")

    assert (refused.exit_code, made.exit_code, done.exit_code) == (2, 0, 0)
    assert "the token is ann's" in refused.stderr
    assert answer_to("ask_1a").by == "ben (token)"
    assert ended.stdout == "ben no longer has a token\n"
    assert toolcrib("approvals", "token", "eve").exit_code == 2
    assert made.stdout.strip().encode() not in (tmp_path / "toolcrib.db").read_bytes()


def test_always_goes_as_far_as_it_is_typed(toolcrib: Command, keep: Keep, tmp_path: Path) -> None:
    keep("ask_1a")
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")

    toolcrib(
        "approvals",
        "approve",
        "-y",
        "1a",
        "--by",
        "ann",
        "--always",
        "--within",
        'item=one of "tea", "milk"',
        "--uses",
        "3",
        "--times",
        "00:00-24:00 Europe/Berlin",
    )

    (grant,) = run_sync(store.standing())
    when = "from 00:00 to 24:00 every day (Europe/Berlin)"
    assert grant.text() == f'buy: item one of "tea", "milk"; on behalf of no principal; {when}; at most 3 times'
    listed = toolcrib("approvals", "standing")
    assert listed.stdout == f"ask_1a  {grant.text()}; by ann (token); used 0 of 3 calls\n"
    assert json.loads(toolcrib("approvals", "standing", "--json").stdout)[0]["used"] == {"calls": 0, "spent": "0"}
    assert toolcrib("approvals", "revoke", "1a").exit_code == 0
    assert toolcrib("approvals", "standing").stdout == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--within", "item=any"], "say how far --always goes"),
        (["--always", "--within", "item"], "'item' is not of the form ARGUMENT=..."),
        (["--always", "--within", "itm=any"], "`itm` is not an argument of buy; there are item"),
        (["--always", "--within", "item=most"], "`item`: 'most' is not a bound"),
        (["--always", "--within", 'item=one of "x"'], 'it does not cover this call: `item` is "tea"'),
        (["--always", "--total", "item=x"], "has no number behind the ="),
        (["--always", "--total", "item=5"], 'it counts `item`, which is "tea", and no number'),
        (["--times", "09:00-17:00"], "say how far --always goes"),
        (["--always", "--times", "9-5"], "'9-5' is not a time of day: write a time from and to"),
        (["--always", "--uses", "0"], "greater than or equal to 1"),
    ],
)
def test_how_far_always_goes_is_checked_as_it_is_typed(
    toolcrib: Command, keep: Keep, tmp_path: Path, options: list[str], why: str
) -> None:
    keep("ask_1a")

    answered = toolcrib("approvals", "approve", "-y", "1a", *options)

    assert answered.exit_code == 2
    assert why in " ".join(answered.stderr.replace("│", " ").split())
    assert run_sync(SqliteApprovalStore(tmp_path / "toolcrib.db").standing()) == ()


def test_a_rule_takes_the_identity_of_a_token_and_no_name(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep("ask_1a", required=(RequiredApprovers("tea", {"buyers": 1}, {"buyers": [["ann"]]}),))
    keep("ask_2b", required=(RequiredApprovers("tea", {"buyers": 1}, {"buyers": [["bob"]]}),))

    shown = toolcrib("approvals", "show", "1a")
    approved, refused = toolcrib("approvals", "approve", "1a", "--yes"), toolcrib("approvals", "approve", "2b", "--yes")

    assert "rule: tea: 1 of buyers (ann)" in shown.stdout
    assert approved.exit_code == 0
    assert refused.exit_code == 1
    assert "the approval of ann (token) does not meet the rule tea: 1 of buyers (bob)" in refused.stderr
    answer = answer_to("ask_1a")
    assert isinstance(answer, Grant)
    assert (answer.by, answer.identity) == ("ann (token)", Identity("ann", "token"))


def test_an_edit_beyond_what_a_person_may_is_refused_and_the_request_waits_on(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None]
) -> None:
    rule = RequiredApprovers("much tea", {"buyers": 1}, {"buyers": [["bob"]]}, over={"grams": "1000"})
    keep("ask_1a", required_if_edited=(rule,))
    approve = ("approvals", "approve", "1a", "--yes", "--arguments")

    refused = toolcrib(*approve, '{"grams": 5000}')

    assert refused.exit_code == 1
    assert "`grams` is 5000 after the edit, and the approval of ann (token) does not meet the rule much tea" in (
        refused.stderr
    )
    assert answer_to("ask_1a") is None
    assert toolcrib(*approve, '{"grams": 500}').exit_code == 0


def test_who_may_answer_now_and_later_is_shown_and_a_token_stands_for_another(
    toolcrib: Command, keep: Keep, answer_to: Callable[[str], Grant | Denial | None]
) -> None:
    rule = RequiredApprovers(
        "tea",
        {"buyers": 1},
        {"buyers": [["bob"]], "managers": [["eve"]]},
        escalation=((3600.0, "managers"),),
        delegations=(Delegation("bob", "ann", now() + timedelta(hours=1)),),
    )
    keep("ask_1a", required=(rule,))

    shown = toolcrib("approvals", "show", "1a").stdout
    as_json = json.loads(toolcrib("approvals", "show", "1a", "--json").stdout)["answerers"]
    approved = toolcrib("approvals", "approve", "1a", "--yes")

    assert "may answer now: buyers (bob, ann for bob)" in shown
    assert re.search(r"^from .*: managers \(eve\)$", shown, re.MULTILINE)
    assert [(one["group"], one["now"]) for one in as_json] == [("buyers", True), ("managers", False)]
    assert approved.exit_code == 0
    answer = answer_to("ask_1a")
    assert answer is not None
    assert answer.by == "ann for bob (token)"


RULES = """[groups]
finance = ["bob", "cid"]
[[rules]]
name = "refunds over 1,000"
tools = ["refund"]
over = { euros = 1000 }
of = { finance = 2 }
"""
CEDAR = """@id("refunds") @people("2") @after("1h")
permit (principal in Group::"finance", action == Action::"approve", resource == Tool::"refund");
"""


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "a.toml",
            RULES,
            "refunds over 1,000: 2 of finance (bob, cid); tools refund; euros over 1000; not the one who asks",
        ),
        ("a.cedar", CEDAR, "refunds: permit finance to approve refund, 2 people, after 1 hour"),
    ],
)
def test_a_file_of_rules_is_checked_and_told_in_words(
    toolcrib: Command, tmp_path: Path, name: str, text: str, line: str
) -> None:
    (tmp_path / name).write_text(text)

    told = toolcrib("approvals", "rules", str(tmp_path / name))
    data = json.loads(toolcrib("approvals", "rules", str(tmp_path / name), "--json").stdout)

    assert told.stdout == f"{line}\n"
    assert data == {"rules": [line]}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.toml", RULES.replace("tools", "tols"), "rule 1: `tols` is unknown. Did you mean `tools`"),
        (
            "a.cedar",
            CEDAR.replace("people", "peple"),
            "`refunds`: the annotation @peple is unknown. Did you mean `people`",
        ),
    ],
)
def test_a_file_of_rules_that_cannot_be_used_says_why(
    toolcrib: Command, tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text)

    told = toolcrib("approvals", "rules", str(tmp_path / name))

    assert told.exit_code != 0
    assert problem in " ".join(told.stderr.split())
