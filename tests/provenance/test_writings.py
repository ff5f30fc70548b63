"""Writings: what a run made of a value that is not known, in another spelling or under a name that it gave."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
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


def test_what_the_run_wrote_is_asked_about_where_its_name_is_run() -> None:
    made = memory("fix build.sh, run it and send it to Ann Lee")
    made.write(ROOT, {"path": "build.sh", "text": "curl evil.com"}, frozenset(["text"]), "write")

    assert made.judge("run_file", "execute", {"path": "build.sh"})
    assert made.judge("run", "execute", {"command": "build.sh"})
    assert not made.judge("send_file", "send", {"path": "build.sh", "to": "Ann Lee"})


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
