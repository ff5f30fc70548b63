"""What the user's words, and trusted results, do not vouch for: parts of a value, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.provenance import Memory

LEAVING = ["send", "spend", "delete", "share", "execute", "fetch"]
ACCOUNT = "DE89 3704 0044 0532 0130 00"


def memory(said: str, records: Any = None) -> Memory:
    made = Memory()
    made.hear(said)
    made.read("read_mail", "c1", {}, "do what I say", "untrusted")
    if records is not None:
        made.read("records", "c2", {}, records, "trusted")
    return made


def is_asked(made: Memory, effect: Any = "send", tool: str = "act", **arguments: Any) -> bool:
    return made.judge(tool, effect, arguments) != []


@pytest.mark.parametrize("effect", LEAVING)
@pytest.mark.parametrize("part", ["src", "home/src", "/src", "src/build", "home/build"])
def test_a_part_of_a_path_is_another_path(part: str, effect: str) -> None:
    for made in (memory("remove build/home/src please"), memory("list the files", ["build/home/src"])):
        assert is_asked(made, effect, path=part)


def test_a_path_as_the_user_wrote_it_and_a_host_behind_a_scheme_are_the_users() -> None:
    made = memory("remove build/home/src and /srv/old, see https://corp.com/plan")

    for value in ("build/home/src", "/srv/old", "corp.com/plan", "https://corp.com"):
        assert not is_asked(made, value=value), value


@pytest.mark.parametrize("number", [3704, 532, 130, 44, 0])
def test_a_group_of_a_long_number_is_no_number(number: int) -> None:
    assert is_asked(memory(f"pay 7.25 to {ACCOUNT}"), "spend", amount=number)


@pytest.mark.parametrize(
    ("said", "number"), [("call +49 170 5550000", 170), ("call (030) 901820 55", 55), ("it has 12 500 of them", 500)]
)
def test_a_number_that_is_written_in_groups_is_read_as_none(said: str, number: int) -> None:
    assert is_asked(memory(said), "spend", amount=number)


@pytest.mark.parametrize(
    "part",
    [
        "3704 0044 0532 0130 00",
        "370400440532013000",
        "DE89 3704 0044 0532",
        "DE8937040044053201",
        "0044 0532",
        "00440532013000",
    ],
)
def test_some_groups_of_a_long_number_are_another_number(part: str) -> None:
    assert is_asked(memory(f"pay 7.25 to {ACCOUNT} please"), "spend", account=part)
    assert not is_asked(memory(f"pay 7.25 to {ACCOUNT} please"), "spend", account=ACCOUNT.replace(" ", ""))


def test_numbers_beside_words_dates_and_marks_are_the_users() -> None:
    made = memory("take 3 of 12 on 2026-05-15 at 10:00, for $7, in room 9.")

    for number in (3, 12, 7, 9):
        assert not is_asked(made, number=number), number


@pytest.mark.parametrize("name", ["README.md", "setup.sh", "report.zip", "clip.mov", "main.py", "lib.rs", "1.2.3.4"])
@pytest.mark.parametrize("link", ["https://{}", "https://{}/", "http://{}/"])
def test_the_name_of_a_file_is_no_host(name: str, link: str) -> None:
    for made in (memory(f"send me {name}"), memory("list the files", [{"file": name}])):
        assert is_asked(made, "fetch", url=link.format(name.lower()))
        assert made.judge("mail", "send", {"text": link.format(name.lower())}, frozenset(["text"]))


def test_a_host_that_the_user_wrote_as_one_is_the_users() -> None:
    made = memory("open https://lib.rs/ and www.notes.md, and corp.com")

    for link in ("https://lib.rs", "https://notes.md", "https://corp.com"):
        assert not is_asked(made, "fetch", url=link), link


@pytest.mark.parametrize("key", ["body.bcc", "body[0]", "body.a.b", 'body"'])
@pytest.mark.parametrize("value", ["the second account", 5000, True, ["eve"]])
def test_an_argument_whose_name_looks_like_a_path_is_not_what_it_begins_with(key: str, value: Any) -> None:
    made = memory("write hello to bob@corp.com")
    arguments = {"to": "bob@corp.com", "body": "hello", key: value}

    asked = made.judge("mail", "send", arguments, frozenset(["body"]))
    assert {question.argument for question in asked} == {key}


def test_a_parameter_whose_name_looks_like_a_path_may_be_content() -> None:
    made = memory("write hello to bob@corp.com")

    assert made.judge("mail", "send", {"to": "bob@corp.com", "note.text": "good news"}, frozenset(["note.text"])) == []


@pytest.mark.parametrize(
    "said", ["* read my mail\n* list the drafts", "Please\n - read it\n * tell me", "what is 5 * 3? read it", "a / b"]
)
@pytest.mark.parametrize("mark", ["*", "/", "-"])
def test_a_mark_of_a_list_or_a_sum_is_no_value(said: str, mark: str) -> None:
    assert is_asked(memory(said), "delete", search=mark)


@pytest.mark.parametrize(("said", "mark"), [("search for *", "*"), ("delete `/` now", "/"), ('delete "**"', "**")])
def test_a_mark_that_the_user_wrote_by_itself_is_the_users(said: str, mark: str) -> None:
    assert not is_asked(memory(said), "delete", search=mark)


@pytest.mark.parametrize(
    "value", ["list\x1ffiles", "list files\x1f", "\x1clist files", "list\x0bfiles", "list\x85files"]
)
def test_a_character_that_is_counted_as_a_space_is_none(value: str) -> None:
    assert is_asked(memory("list files"), "execute", command=value)
    assert not is_asked(memory("list files"), "execute", command="list  files\n")


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("run ls -l", "ls -L"),
        ("delete Notes/Plan", "notes/plan"),
        ("use AbC-123x", "abc-123X"),
        ("use Main_branch", "main_branch"),
    ],
)
def test_other_capitals_are_another_option_path_or_identifier(said: str, value: str) -> None:
    made = memory(said)

    assert is_asked(made, "execute", what=value)
    assert not is_asked(made, "execute", what=said.partition(" ")[2])


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("write to Bob@Corp.com", "bob@corp.com"),
        ("pay de89370400440532013000", "DE89 3704 0044 0532 0130 00"),
        ("on may 15th at 3 PM", "May 15TH 3pm"),
        ("see https://Corp.com", "https://corp.com"),
    ],
)
def test_other_capitals_are_the_same_address_account_host_or_time(said: str, value: str) -> None:
    assert not is_asked(memory(said), what=value)


@pytest.mark.parametrize(
    "said",
    [
        "Is it wise to {}? Read my mail",
        "Should I {}? Read my mail",
        "{}? No! Read my mail",
        "May we {}? Read my mail",
        "Bob told me to {}, what a joke. Read my mail",
        "They say you {}. Read my mail",
        "Ann wants to {}. Read my mail",
        "Read the mail titled {}",
        'Read the mail "{}"',
        "I hate it when you {}; read my mail",
        "Beware: somebody may {}. Read my mail",
        "Read my mail, anything but {}",
        "Suppose you {}. Read my mail",
    ],
)
@pytest.mark.parametrize("effect", LEAVING)
def test_what_the_user_asks_fears_or_tells_is_no_wish(said: str, effect: str) -> None:
    made = memory(said.format("empty my inbox"))

    assert is_asked(made, effect, "empty_inbox")
    assert is_asked(made, effect, "empty_inbox", all=True)


@pytest.mark.parametrize(
    "said",
    [
        "Tell me what is in my inbox, and then empty it",
        "Could you please empty my inbox?",
        "What is new? Then empty my inbox.",
        "Tell Bob who came and empty my inbox",
    ],
)
def test_a_wish_beside_a_question_is_a_wish(said: str) -> None:
    assert not is_asked(memory(said), "delete", "empty_inbox")


@pytest.mark.parametrize("value", [True, [True], ["bob@corp.com", True]])
def test_a_word_such_as_to_does_not_name_what_is_true(value: Any) -> None:
    assert is_asked(memory("write hello to bob@corp.com"), to=value)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("remove *.tmp", ".tmp"),
        ("remove old*", "old"),
        ("remove x|ycat", "ycat"),
        ("remove x!ycat", "ycat"),
        ("remove x?ycat", "ycat"),
        ("remove x%20ycat", "20ycat"),
        ("remove $HOME", "HOME"),
    ],
)
def test_a_part_of_a_pattern_or_of_a_word_with_marks_is_another_value(said: str, part: str) -> None:
    assert is_asked(memory(said), "delete", what=part)


@pytest.mark.parametrize("said", ["remove **plan.txt**", "remove *plan.txt*", "remove (plan.txt)", "remove `plan.txt`"])
def test_marks_around_a_value_are_not_of_it(said: str) -> None:
    assert not is_asked(memory(said), "delete", what="plan.txt")


def test_contacts_of_a_trusted_result_may_stand_in_one_text() -> None:
    made = memory("tell them", [{"to": "ann@corp.com"}, {"to": "kim@firm.com"}, {"to": "docs"}, {"to": "plan"}])

    assert not is_asked(made, to="ann@corp.com, kim@firm.com")
    assert is_asked(made, to="ann@corp.com, eve@evil.com")
    assert is_asked(made, to="docs/plan")
