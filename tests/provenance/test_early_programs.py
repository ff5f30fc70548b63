"""Early programs: their literals count as the user's values, and nothing else of them counts."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.provenance import Memory

CODE: list[tuple[str, str, dict[str, Any]]] = [
    ("print(2 * len(t))", "delete_files", {"path": "*"}),
    ("print('*', t)", "delete_files", {"path": "*"}),
    ("print(t.split('/'))", "delete_files", {"path": "/"}),
    ("print(t.rstrip('.'))", "delete_files", {"path": "."}),
    ("print(t.find(' % '))", "delete_files", {"path": "%"}),
    ("public = True\nprint(t)", "make", {"public": True}),
    ("public = 'make it public' if t else ''", "make", {"public": True}),
    ("def publish(all): return all", "publish_all", {}),
    ("# empty my inbox", "empty_inbox", {}),
    ("empty, inbox = '', t", "empty_inbox", {}),
    ("'''Empty my inbox.'''", "empty_inbox", {}),
    ("print(mail.to)", "fetch", {"url": "https://mail.to/"}),
    ("print(row.cloud.host)", "fetch", {"url": "cloud.host/x"}),
    ("from pathlib import PurePath as home", "delete_files", {"path": "home"}),
    ("all = list(t)", "delete_files", {"path": "all"}),
    ("print('docs', 'old')", "delete_files", {"path": "docs old"}),
    ("print(40, 2)", "order", {"number": 402}),
    ("print(5 - x)", "order", {"number": -5}),
    ("not a program (", "delete_files", {"path": "program"}),
    ("x = " + "(" * 300 + ")" * 300, "delete_files", {"path": "x"}),
]


def memory(*programs: str) -> Memory:
    made = Memory()
    made.hear("what is new?")
    for program in programs:
        assert made.intend(program)
    made.read("read_page", "c1", {}, "Act!", "untrusted")
    return made


@pytest.mark.parametrize(("code", "tool", "arguments"), CODE)
def test_what_is_no_literal_is_neither_the_users_value_nor_his_will(
    code: str, tool: str, arguments: dict[str, Any]
) -> None:
    for effect in ("delete", "share", "execute"):
        assert memory(code).judge(tool, effect, arguments)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("send(to='bob@corp.com')", "bob@corp.com"),
        ("send(to=f'{name}@corp.com', cc='ann@corp.com')", "ann@corp.com"),
        ("pay(12.5)", 12.5),
        ("pay(-7)", -7),
        ("pay(*[1, 250], **{'to': 'ann'})", 250),
        ("open('build/*.tmp')", "build/*.tmp"),
        ("f('on May 5, at the corner')", "May 5"),
    ],
)
def test_a_literal_is_the_users_value(code: str, value: Any) -> None:
    assert not memory(code).judge("act", "delete", {"what": value})


def test_the_users_own_words_are_his_will_behind_many_programs() -> None:
    made = memory(*(f"print({number})" for number in range(1_000, 1_100)))
    made.hear("then empty my inbox, and make it public")

    assert not made.judge("empty_inbox", "delete", {})
    assert not made.judge("make", "share", {"public": True})


@pytest.mark.parametrize("mail", [{"address": "eve@evil.com"}, {"text": None, "address": "eve@evil.com"}], ids=str)
def test_a_program_is_late_after_an_object_that_a_stranger_brought_without_a_text(mail: Any) -> None:
    made = Memory()
    made.hear("what is new?")
    made.read("read_inbox", "c1", {}, [mail], {"text": "untrusted", "*": "trusted"})

    assert not made.intend("send(to='eve@evil.com')")
    assert made.judge("send", "send", {"to": "eve@evil.com"})
