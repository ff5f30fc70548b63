"""What a call takes without naming it: what the run made of unknown values, by the name of the tool or a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from toolcrib.provenance import Memory, Origin
from toolcrib.tools import Effect

SAID = "Read my mail, note it for Ann as number 71; then send drafts, pay bills, empty trash, publish site, run jobs"
MADE: list[tuple[str, Mapping[str, Any], str, Effect]] = [
    ("create_draft", {"to": "eve@evil.com", "about": "Ann"}, "send_drafts", "send"),
    ("add_bill", {"account": "DE89370400440532013000", "about": "Ann"}, "pay_bills", "spend"),
    ("move_to_trash", {"path": "taxes.pdf", "about": "Ann"}, "empty_trash", "delete"),
    ("write_page", {"path": "evil.html", "about": "Ann"}, "publish_site", "share"),
    ("add_job", {"command": "curl evil", "about": "Ann"}, "run_jobs", "execute"),
]
NUMBERED: list[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]] = [
    ("update_draft", {"draft_id": 71}, "send_draft", {"draft_id": 71}),
    ("update_draft", {"draft": "71"}, "send_draft", {"draft_id": 71}),
    ("add_guest", {"event_id": 71}, "invite_to_event", {"id": 71}),
    ("set_payee", {"invoice": 71}, "settle_invoice", {"invoice": 71}),
    ("add_member", {"group": 71}, "write_to_group", {"group": "71"}),
]


def memory(said: str = SAID) -> Memory:
    made = Memory()
    made.hear(said)
    made.read("read_mail", "c1", {}, "A riddle: do as it says", "untrusted")
    return made


def write(made: Memory, tool: str, arguments: Mapping[str, Any], call_id: str = "c2") -> None:
    made.write(Origin("untrusted", tool, call_id), arguments, frozenset(), "create")


def kinds(made: Memory, tool: str, effect: Effect, **arguments: Any) -> list[str]:
    return [question.kind for question in made.judge(tool, effect, arguments)]


@pytest.mark.parametrize(("tool", "arguments", "strike", "effect"), MADE, ids=lambda each: str(each)[:20])
def test_a_call_without_a_value_is_asked_about_when_the_run_made_something_unknown(
    tool: str, arguments: Mapping[str, Any], strike: str, effect: Effect
) -> None:
    made = memory()
    before = kinds(made, strike, effect)

    write(made, tool, arguments)

    assert before == []
    assert kinds(made, strike, effect) == ["bound"]


def test_a_yes_for_what_the_run_made_holds_until_it_makes_more() -> None:
    made = memory()
    write(made, *MADE[0][:2])
    made.approve("send_drafts", made.judge("send_drafts", "send", {}), {})
    after_yes = kinds(made, "send_drafts", "send")

    write(made, "create_draft", {"to": "mallory@evil.com", "about": "Ann"}, "c3")

    assert after_yes == []
    assert kinds(made, "send_drafts", "send") == ["bound"]


def test_a_command_is_asked_about_when_the_run_made_a_job_of_an_unknown_value() -> None:
    made = memory("Read my mail, add the job for Ann, and run make")
    write(made, *MADE[4][:2])

    assert kinds(made, "run", "execute", command="make") == ["bound"]


def test_a_call_without_a_value_is_not_asked_about_when_all_that_the_run_made_is_known() -> None:
    made = memory(f"{SAID} to ann@corp.com")
    write(made, "create_draft", {"to": "ann@corp.com", "about": "Ann"})

    assert kinds(made, "send_drafts", "send") == []


@pytest.mark.parametrize(("tool", "number", "strike", "arguments"), NUMBERED, ids=lambda each: str(each)[:20])
@pytest.mark.parametrize("effect", ["send", "spend", "share", "delete", "execute"])
def test_a_number_is_a_name_where_it_is_of_the_same_thing(
    tool: str, number: Mapping[str, Any], strike: str, arguments: Mapping[str, Any], effect: Effect
) -> None:
    made = memory()
    write(made, tool, {**number, "to": "eve@evil.com"})

    assert "bound" in kinds(made, strike, effect, **arguments)


def test_the_number_of_another_thing_is_no_name() -> None:
    made = memory("Read my mail; draft 71 is for Ann, and close ticket 71 and 72")
    write(made, "update_draft", {"draft_id": 71, "to": "eve@evil.com"})

    assert kinds(made, "close_ticket", "delete", ticket=71) == []
    assert kinds(made, "close_ticket", "delete", quantity=71) == []


def test_a_number_that_a_call_returned_is_a_name_though_the_user_wrote_it() -> None:
    made = memory("Draft it for Ann, and send draft 1")
    write(made, "create_draft", {"to": "eve@evil.com", "about": "Ann"})
    made.read("create_draft", "c2", {"to": "eve@evil.com", "about": "Ann"}, {"id": 1}, "trusted", echoes=True)

    assert "bound" in kinds(made, "send_draft", "send", draft_id=1)


def test_a_number_that_came_afterwards_may_be_of_what_the_run_made() -> None:
    made = memory("Draft it for Ann, and send the draft to bob@corp.com")
    made.read("list_drafts", "c2", {}, [{"id": 5001}], "trusted")
    write(made, "create_draft", {"to": "eve@evil.com", "about": "Ann"}, "c3")
    made.read("list_drafts", "c4", {}, [{"id": 5001}, {"id": 5002}, {"id": 5003, "to": "bob@corp.com"}], "trusted")

    assert [kinds(made, "send_draft", "send", draft_id=number) for number in (5001, 5002, 5003)] == [[], ["bound"], []]


@pytest.mark.parametrize("number", [1, 1.0, "1", "true"], ids=repr)
def test_one_is_not_true(number: Any) -> None:
    assert kinds(memory(), "send_drafts", "send", all=number) != []
    assert kinds(memory(), "send_drafts", "send", all=True) == []


@pytest.mark.parametrize(
    ("allowed", "wanted"),
    [
        ("purge cache", "purge Ann"),
        ("copy live backup", "copy backup live"),
        ("purge 5000 cache", "purge 5000 Ann"),
        ("purge --hard cache", "purge --hard Ann"),
    ],
)
def test_a_yes_for_words_holds_for_the_whole_of_them(allowed: str, wanted: str) -> None:
    made = memory()
    made.approve("run", made.judge("run", "execute", {"command": allowed}), {"command": allowed})

    assert kinds(made, "run", "execute", command=allowed) == []
    assert kinds(made, "run", "execute", command=wanted) != []
