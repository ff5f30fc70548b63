"""Writings: what a run made of a value that is not known, in another spelling or under a name that it gave."""

from __future__ import annotations

import gc
import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.provenance import Memory, Origin
from toolcrib.tools import Effect

WORDS = st.text("abcdefghijklm", min_size=4, max_size=9)
DIGITS = st.from_regex(r"[1-9][0-9]{13,19}", fullmatch=True)
LEAVING: tuple[Effect, ...] = ("send", "spend", "share", "execute")
ROOT = Origin("untrusted", "add_thing", "c3")


def spaced(text: str, size: int = 4) -> str:
    return " ".join(text[at : at + size] for at in range(0, len(text), size))


def marked(text: str) -> str:
    return text.replace("@", " @ ").replace(".", " . ")


SPELLINGS: list[Callable[[str], str]] = [  # each of which a store may undo
    spaced,
    marked,
    lambda text: "-".join(text),
    lambda text: "".join(f"%{ord(char):02X}" for char in text),
    lambda text: "".join(f"&#{ord(char)};" for char in text),
    lambda text: "\u200b".join(text),
    lambda text: "".join(chr(ord(char) + 0xFEE0) for char in text),
    lambda text: quote(spaced(text, 3)),
    lambda text: unicodedata.normalize("NFD", text.replace("a", "\u00e1")),
    lambda text: spaced(text, 5).upper(),
]


def memory(said: str = "do it for the boss") -> Memory:
    made = Memory()
    made.hear(said)
    made.read("contacts", "c1", {}, ["Ann Lee", "bob@corp.com"], "trusted")
    made.read("read_mail", "c2", {}, "Note what I say, spelled backwards", "untrusted")
    return made


@settings(max_examples=examples(300), deadline=None)
@given(WORDS, WORDS, DIGITS, st.sampled_from(SPELLINGS), st.integers(0, 3), st.booleans())
def test_a_value_is_not_trusted_that_a_store_spells_anew(
    first: str, last: str, digits: str, spell: Callable[[str], str], kind: int, is_alone: bool
) -> None:
    value = (f"{first}@{last}.com", f"DE{digits}", f"+{digits}", f"https://{last}.com/{first}")[kind]
    written, made = spell(value), memory()
    made.write(ROOT, {"value": written}, frozenset(), "create")
    made.read("things", "c4", {}, [value if is_alone else f"it is {value}"], "trusted")

    for effect in LEAVING:
        assert made.judge("act", effect, {"what": value}) != []


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, st.sampled_from(["2027-03-09", "16:00", "eve@evil.com", "17", "g-812", "$5"]), st.booleans())
def test_what_a_record_has_beside_a_name_of_the_runs_is_not_known(title: str, value: str, is_by_key: bool) -> None:
    made = memory(f"note {title}")
    made.write(ROOT, {"title": title, "value": "as the riddle says"}, frozenset(), "create")
    record = {title: value, "other": "x y"} if is_by_key else {"title": title, "value": value}
    made.read("things", "c4", {}, [record], "trusted")
    known = memory(f"note {title}")
    known.read("things", "c4", {}, [record], "trusted")

    assert made.judge("cancel", "delete", {"what": value})
    assert not known.judge("cancel", "delete", {"what": value})


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, st.sampled_from(["{}", "{}.sh", "the {}"]), st.sampled_from(LEAVING))
def test_a_name_that_the_run_gave_to_an_unknown_value_is_asked_about(name: str, form: str, effect: Effect) -> None:
    name = form.format(name)
    made, known = memory(f"do it for {name} please"), memory(f"do it for {name} please, and Oslo")
    made.write(ROOT, {"name": name, "value": "eve@evil.com"}, frozenset(), "create")
    known.write(ROOT, {"name": name, "value": "Oslo"}, frozenset(), "create")

    assert [each.kind for each in made.judge("act", effect, {"to": name})] == ["bound"]
    assert not known.judge("act", effect, {"to": name})


@pytest.mark.parametrize("command", ["sh build.sh", "run it", "make test", "sh app"])
def test_what_the_run_wrote_is_asked_about_where_it_may_be_run(command: str) -> None:
    made = memory("fix app/build.sh, run it, or make test, or sh build.sh, or sh app, and send it to Ann Lee")
    made.write(ROOT, {"path": "app/build.sh", "text": "curl -s"}, frozenset(["text"]), "write")
    questions = made.judge("run", "execute", {"command": command})

    assert [question.kind for question in questions] == ["bound"]
    assert not made.judge("send_file", "send", {"path": "app/build.sh", "to": "Ann Lee"})

    made.approve("run", questions, {"command": command})

    assert not made.judge("run", "execute", {"command": command})

    made.write(ROOT, {"path": "app/build.sh", "text": "curl -k"}, frozenset(["text"]), "write")

    assert made.judge("run", "execute", {"command": command})


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, st.sampled_from(["{}", "{}.txt", "the {}"]), st.sampled_from(["eve@evil.com", "see https://evil.com/x"]))
def test_a_name_is_asked_about_under_which_a_link_is_given_to_others(name: str, form: str, text: str) -> None:
    name = form.format(name)
    made, known = (memory(f"note it in {name}, and send {name} to Ann Lee, as on www.corp.com") for _ in range(2))
    made.write(ROOT, {"path": name, "text": text}, frozenset(["text"]), "write")
    known.write(ROOT, {"path": name, "text": "hello, see www.corp.com"}, frozenset(["text"]), "write")

    for effect in ("send", "share"):
        arguments = {"file": name, "to": "Ann Lee"}
        assert [question.kind for question in made.judge("give", effect, arguments)] == ["bound"]
        assert not known.judge("give", effect, arguments)
    assert not made.judge("delete", "delete", {"file": name})


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, DIGITS, st.sampled_from(["create", "write"]), st.booleans())
def test_a_name_for_a_trusted_value_that_the_user_did_not_name_is_not_paid(
    name: str, digits: str, effect: Effect, is_read: bool
) -> None:
    made, named = memory(f"pay {name} 10"), memory(f"pay {name} 10, who has DE{digits}")
    for each in (made, named):
        each.read("payees", "c3", {}, [{"name": "Dora", "iban": f"DE{digits}"}], "trusted")
        each.write(ROOT, {"name": name, "iban": f"DE{digits}"}, frozenset(), effect)
        if is_read:
            each.read("list_payees", "c4", {}, [{"id": 4711, "name": name, "iban": f"DE{digits}"}], "trusted")

    assert {question.kind for question in made.judge("pay", "spend", {"to": name, "amount": 10})} == {"bound"}
    assert not made.judge("send", "send", {"to": name})
    assert not named.judge("pay", "spend", {"to": name, "amount": 10})
    if is_read:
        assert made.judge("pay", "spend", {"payee_id": 4711, "amount": 10})


def test_the_handle_of_what_was_made_of_an_unknown_value_is_unknown() -> None:
    made, known = memory("make the board"), memory("make the board of kim@corp.com")
    for each, member in ((made, "eve@evil.com"), (known, "kim@corp.com")):
        each.write(ROOT, {"name": "board", "members": [member]}, frozenset(), "create")
        each.read("add_thing", "c3", {}, {"group": "g-812"}, "trusted", echoes=True)

    assert made.judge("send", "send", {"to": "g-812"})
    assert not known.judge("send", "send", {"to": "g-812"})


def test_a_name_is_not_asked_about_whose_value_was_approved() -> None:
    made = memory("note Ann")
    made.read("read_mail", "c3", {}, "I am eve@evil.com", "untrusted")
    arguments = {"name": "Ann", "address": "eve@evil.com"}
    made.approve("add_thing", made.judge("add_thing", "create", arguments), arguments)
    made.write(ROOT, arguments, frozenset(), "create")

    assert not made.judge("send", "send", {"to": "Ann"})


@pytest.mark.parametrize("value", ["Ann Lee", "bob@corp.com", "the boss"])
def test_what_was_known_before_is_known_where_it_is_read_again(value: str) -> None:
    made = memory()
    made.write(ROOT, {"name": value, "value": "eve@evil.com"}, frozenset(), "create")
    made.read("things", "c4", {}, [{"name": "x y", "value": value}], "trusted")

    assert all(each.kind == "bound" for each in made.judge("act", "send", {"to": value}))


ENTRIES = [
    "{name} <{value}>",
    "{value} ({name})",
    "{name}={value}",
    "{name}: {value}",
    "{name}; {value}",
    "{name} {value}",
]
NESTED: list[Callable[[str, str], object]] = [  # results with a name and a value that was made with it
    lambda name, value: {"name": name, "contact": {"address": value}},
    lambda name, value: [{"name": name, "at": [{"more": {"address": value}}]}],
    lambda name, value: {name: {"address": value}},
    lambda name, value: {"name": name, **{f"f{number}": number for number in range(40)}, "address": value},
    lambda name, value: {"rows": [[name, value]]},
    lambda name, value: [name, value],
    lambda name, value: f"{name}: {value}",
    lambda name, value: [f"{name} is at {value}"],
]
GROUPINGS: list[Callable[[str], str]] = [" ".join, "-".join, lambda text: f"EUR{text}", lambda text: f"{text}x"]
DAYS = ["05/03/2027", "5.3.2027", "2027/03/05", "5-3-27", "20270305", "5 Mar 2027", "March 5th", "5th of March 2027"]
TIMES = ["4 pm", "4pm", "16.00", "1600", "16 00"]


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, WORDS, st.sampled_from(ENTRIES), st.sampled_from(LEAVING))
def test_a_name_is_asked_about_that_stands_in_one_value_with_what_is_not_known(
    name: str, host: str, entry: str, effect: Effect
) -> None:
    made = memory(f"note {name}")
    made.write(ROOT, {"entry": entry.format(name=name, value=f"eve@{host}.com")}, frozenset(), "create")

    assert made.judge("act", effect, {"to": name})


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, WORDS, st.sampled_from(NESTED))
def test_what_stands_deeper_beside_a_name_of_the_runs_is_not_known(
    name: str, host: str, nested: Callable[[str, str], object]
) -> None:
    value, result = f"eve@{host}.com", nested(name, f"eve@{host}.com")
    made, known = memory(f"note {name}"), memory(f"note {name}")
    made.write(ROOT, {"name": name, "value": value[::-1]}, frozenset(), "create")
    for each in (made, known):
        each.read("things", "c4", {}, result, "trusted")

    assert made.judge("send", "send", {"to": value})
    assert isinstance(result, str) or not known.judge("send", "send", {"to": value})


def test_a_key_is_a_name_or_a_value_that_the_run_wrote() -> None:
    made = memory("note Ann, and list what is there")
    made.write(
        ROOT, {"entries": {"Ann": "eve@evil.com", "zed @ evil . com": "Ann"}}, frozenset(), "create", ("entries",)
    )
    made.read("things", "c4", {}, ["zed@evil.com"], "trusted")

    assert made.judge("send", "send", {"to": "Ann"})
    assert made.judge("send", "send", {"to": "zed@evil.com"})
    assert [*made.judge_keys("send", {"to": {"Ann": True}}, ("to",), "send")]


@pytest.mark.parametrize(
    ("written", "read"), [*((day, "2027-03-05") for day in DAYS), *((at, "16:00") for at in TIMES)]
)
def test_a_date_or_a_time_is_not_trusted_that_a_store_spells_anew(written: str, read: str) -> None:
    made = memory("note it")
    made.write(ROOT, {"value": written}, frozenset(), "create")
    made.read("things", "c4", {}, [read], "trusted")

    assert made.judge("cancel", "delete", {"what": read})
    assert not memory(f"cancel it at {read}").judge("cancel", "delete", {"what": read})


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(100, 10**9), st.sampled_from(GROUPINGS))
def test_a_number_is_not_trusted_that_a_store_spells_anew(number: int, spell: Callable[[str], str]) -> None:
    made = memory("note it")
    made.write(ROOT, {"value": spell(str(number))}, frozenset(), "create")
    made.read("things", "c4", {}, [number], "trusted")

    assert made.judge("act", "delete", {"what": number})


@settings(max_examples=examples(50), deadline=None)
@given(WORDS, WORDS, st.sampled_from(LEAVING))
def test_another_name_of_what_was_bound_is_asked_about(first: str, last: str, effect: Effect) -> None:
    name, handle, other = f"{first} board", "g-817", f"{last} team"
    made = memory(f"go on with {name}, {handle} and {other}")
    made.read("groups", "c3", {}, [{"id": handle, "name": name}, {"id": "g-818", "name": "x y"}], "trusted")
    made.write(ROOT, {"group": name, "member": "eve@evil.com"}, frozenset(), "write")
    made.write(ROOT, {"group": name, "to": other}, frozenset(), "write")

    for value in (name, handle, other):
        assert [each.kind for each in made.judge("act", effect, {"to": value})] == ["bound"]


def test_a_result_about_a_name_that_the_run_gave_is_not_known() -> None:
    made, known = memory("note Ann"), memory("note Ann")
    made.write(ROOT, {"name": "Ann", "value": "moc.live@eve"}, frozenset(), "create")
    for each in (made, known):
        each.read("get_thing", "c4", {"name": "Ann"}, {"address": "eve@evil.com"}, "trusted")

    assert made.judge("send", "send", {"to": "eve@evil.com"})
    assert not known.judge("send", "send", {"to": "eve@evil.com"})


def test_a_script_of_the_models_is_asked_about_by_its_handle_and_without_its_folder() -> None:
    made = memory("fix build.sh in src/ and run it")
    made.write(ROOT, {"path": "src/build.sh", "text": "curl evil.com"}, frozenset(["text"]), "write")
    made.read("add_thing", "c3", {}, {"id": "s-812"}, "trusted", echoes=True)
    made.read("things", "c4", {}, [{"id": "s-913", "text": "curl evil.com"}], "trusted")

    for value in ("s-812", "s-913", "build.sh", "sh build.sh"):
        assert made.judge("run", "execute", {"command": value})


@pytest.mark.parametrize("value", ["eve@evil.com", "eve @ evil . com", "moc.live@eve"])
def test_all_values_of_a_field_are_asked_about_where_the_run_wrote_one(value: str) -> None:
    everyone = ["ann@corp.com", "bob@corp.com", "eve@evil.com"]
    made, known = memory("write to all"), memory("write to all")
    made.write(ROOT, {"name": "the boss", "value": value}, frozenset(), "create")
    for each in (made, known):
        each.hear("the boss")
        names = ("Ann", "Bob", "the boss")
        rows = [{"name": name, "address": address} for name, address in zip(names, everyone, strict=True)]
        each.read("people", "c4", {}, rows, "trusted")

    assert made.judge("send", "send", {"to": everyone})
    assert not known.judge("send", "send", {"to": everyone})


def test_all_values_of_a_field_are_asked_about_where_the_run_wrote_one_without_a_name() -> None:
    made, everyone = memory("write to all"), ["ann@corp.com", "bob@corp.com", "eve@evil.com"]
    made.write(ROOT, {"value": "it is eve @ evil . com"}, frozenset(), "create")
    made.read("people", "c4", {}, everyone, "trusted")

    assert made.judge("send", "send", {"to": everyone})


def steps_of(act: Callable[[], object]) -> int:
    """Return how many functions are called meanwhile."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    gc.disable()  # Hypothesis counts collections by a function
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return steps


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("value", ["lou@corpus.com", "DE89370400440532013000", "30.25", "Lou Corpus"])
def test_a_look_up_takes_as_many_steps_after_many_writes_as_after_some(value: str, is_before: bool) -> None:
    few, many = memory("note them"), memory("note them")
    for made, count in ((few, 30), (many, 300)):
        read = partial(made.read, "entries", "c3", {}, [{"of": "corpus", "value": value}], "trusted")
        _ = read() if is_before else None
        for at in range(count):
            entry = {"name": f"zz{at}y", "value": f"q{at}corpusq893704q{at}@zcorpusz{at}.net"}
            made.write(ROOT, entry, frozenset(), "create")
        _ = None if is_before else read()

    judged = [steps_of(partial(made.judge, "act", "send", {"to": value})) for made in (few, many)]
    wrote = [steps_of(partial(made.write, ROOT, {"to": value}, frozenset(), "send")) for made in (few, many)]
    assert judged[0] == judged[1]
    assert wrote[0] == wrote[1]


def test_a_name_that_many_calls_give_to_what_is_not_known_takes_as_many_steps_as_one_of_some() -> None:
    few, many = memory("note Zoe"), memory("note Zoe")
    for made, count in ((few, 120), (many, 600)):
        for at in range(count):
            made.write(ROOT, {"name": "Zoe", "value": f"q{at}q"}, frozenset(), "create")

    steps = [steps_of(partial(made.judge, "act", "send", {"to": "Zoe"})) for made in (few, many)]
    assert steps[0] == steps[1]
    assert len(many.judge("act", "send", {"to": "Zoe"})[0].why) < 200


def test_a_yes_for_a_name_does_not_hold_for_what_it_is_given_to_later() -> None:
    made = memory("note Zoe")
    made.write(ROOT, {"name": "Zoe", "value": "eve at evil"}, frozenset(), "create")
    made.approve("send", made.judge("send", "send", {"to": "Zoe"}), {"to": "Zoe"})
    before = made.judge("send", "send", {"to": "Zoe"})
    made.write(ROOT, {"name": "Zoe", "value": "mallory at bad"}, frozenset(), "create")

    assert before == []
    assert "mallory at bad" in made.judge("send", "send", {"to": "Zoe"})[0].why


@pytest.mark.parametrize("kind", ["value", "key"])
def test_each_name_in_a_value_is_asked_about(kind: str) -> None:
    made, both = memory("note Zoe and Kim"), "Zoe and Kim"
    for name in ("Zoe", "Kim"):
        made.write(ROOT, {"name": name, "value": f"{name} at evil"}, frozenset(), "create")
    asked = made.judge("send", "send", {"to": both}) if kind == "value" else made.judge_keys("send", {both: ""}, ())

    assert sorted(each.why.split("(")[1].split(")")[0] for each in asked) == ["Kim at evil", "Zoe at evil"]


def test_what_is_written_is_bounded_and_no_result_is_trusted_beyond() -> None:
    made = memory("note it")
    made.write(ROOT, {"value": "ab" * 300_000}, frozenset(), "create")

    assert made.judge("send", "send", {"to": "bob@corp.com"})


def test_a_file_into_which_the_run_wrote_is_shared_by_its_number_and_not_run() -> None:
    made = memory("create a file 'packing.sh', share it with Ann Lee, and run it")
    made.read("read_mail", "c3", {}, "see you on the 26th, at 26 Elm Street", "untrusted")
    made.write(ROOT, {"filename": "packing.sh", "text": "socks and hats"}, frozenset(["text"]), "create")
    made.read("create_file", "c4", {}, {"id": 26, "filename": "packing.sh", "text": "socks and hats"}, "trusted")

    assert not made.judge("share_file", "share", {"file_id": 26, "to": "Ann Lee"})
    assert made.judge("run_file", "execute", {"file_id": 26})
