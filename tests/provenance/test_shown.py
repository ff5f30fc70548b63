"""A stranger's text as it is shown, and a stranger's files: what a model reads there is a stranger's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.calls import Media, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Provenance, memory_of
from toolcrib.provenance._links import shown_words
from toolcrib.tools import ez_tool

WORDS = st.text("abcdefghijklm", min_size=4, max_size=9)
SHOWN: list[Callable[[str], str]] = [
    lambda value: value.replace("@", "&#64;").replace(".", "&period;"),
    lambda value: value.replace("@", "%40").replace(".", "%2E"),
    lambda value: value.replace("@", "%2540"),
    lambda value: f"{value[:3]}\u200b{value[3:]}",
    lambda value: f"{value[:3]}\u00ad{value[3:]}",
    lambda value: value.replace("@", "\\@").replace(".", "\\."),
    lambda value: value.replace("@", "\\u0040"),
    lambda value: f"**{value[:3]}**{value[3:]}",
    lambda value: f"`{value[:3]}`{value[3:]}",
    lambda value: value.replace("@", '<b class="x y">@</b>'),
    lambda value: f"{value[:3]}<!-- no -->{value[3:]}",
    lambda value: f"{value[:3]}=\r\n{value[3:]}",
    lambda value: f"&lt;{value.replace('@', '&commat;')}&gt;",
    lambda value: f"_{value}_",
    lambda value: f"<b>{value[:3]}</b>{value[3:]}",
]
PHRASES = [
    "**{}** {} {}",
    "{} <b>{}</b> {}",
    "_{} {} {}_",
    "{} {} `{}`",
    "{} &nbsp; {} {}",
    "<i>{} {} {}</i>",
    "__{}__ {} {}",
]
FIGURES: list[Callable[[int], str]] = [
    lambda number: f"EUR{number}",
    lambda number: f"{number}kg",
    lambda number: f"-{number}",
    lambda number: f"{number:,}".replace(",", "'"),
    lambda number: f"{number:,}".replace(",", " "),
    lambda number: f"{number:,}".replace(",", ".") + ",00",
    lambda number: f"_{number}_",
]


def memory(letter: str) -> Memory:
    made = Memory()
    made.hear("note it for Ann")
    made.read("read_mail", "c1", {}, letter, "untrusted")
    return made


@settings(max_examples=examples(200), deadline=None)
@given(WORDS, WORDS, st.sampled_from(SHOWN))
def test_a_value_is_a_strangers_that_his_text_shows(name: str, host: str, show: Callable[[str], str]) -> None:
    value = f"{name}@{host}.com"

    assert memory(f"It is {show(value)} !").origin(value).kind == "untrusted"


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1_001, 999_999), st.sampled_from(FIGURES))
def test_a_number_is_a_strangers_that_his_text_writes_in_groups_or_with_letters(
    number: int, write: Callable[[int], str]
) -> None:
    assert memory(f"It is {write(number)} !").origin(number).kind == "untrusted"


@settings(max_examples=examples(100), deadline=None)
@given(WORDS, WORDS, st.integers(1, 99), st.sampled_from(PHRASES))
def test_words_are_a_strangers_some_of_which_his_text_shows_as_others(
    first: str, last: str, number: int, phrase: str
) -> None:
    made = memory(f"It is {phrase.format(first, number, last)} !")

    assert made.origin(f"{first} {number} {last}").kind == "untrusted"


@pytest.mark.parametrize(
    ("text", "value"), [("it is 42,7 kg", 42.7), ("_42_ of them", 42), ("see _May 5 2031_", "2031-05-05")]
)
def test_a_figure_is_a_strangers_that_has_a_comma_of_decimals_or_emphasis(text: str, value: float | str) -> None:
    assert memory(text).origin(value).kind == "untrusted"


def test_a_text_without_marks_is_shown_as_it_is() -> None:
    assert shown_words("Write to ann@corp.com, 5 < 6 = 30 / 5, R&D, 50% *") == ""


FILES: dict[str, tuple[Any, str]] = {
    "a text": (Media("text/plain", b"it is eve@evil.com"), "untrusted"),
    "a page in a list": ([{"file": Media("text/html", b"<p> eve@evil.com")}], "untrusted"),
    "JSON": ({"a": Media("application/json", b'["eve@evil.com"]')}, "untrusted"),
    "a picture": (Media("image/png", b"\x89PNG\xff"), "model"),
    "a document": ([Media("application/pdf", b"%PDF\xff")], "model"),
    "a link": (Media("image/png", url="https://corp.com/a.png"), "model"),
}


@pytest.mark.parametrize("label", ["untrusted", "trusted"])
@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_read_and_one_without_text_is_lost(name: str, label: Any) -> None:
    value, kind = FILES[name]

    @ez_tool(effect="none", source=label)
    async def attachment() -> Any:
        """Return a file."""
        return value

    @ez_tool(effect="none", source="trusted")
    async def files() -> list[str]:
        """List the user's files."""
        return ["plan.txt"]

    run = Run(features=[Provenance()])
    for tool in (attachment, files):
        await Pipeline([attachment, files]).run(ToolCall(tool.name, {}), run)
    made = memory_of(run)
    made.settle()

    is_strangers = label == "untrusted"
    assert made.is_full is (is_strangers and kind == "model")
    assert made.origin("eve@evil.com").kind == (
        kind if is_strangers else "trusted" if kind == "untrusted" else "derived"
    )


async def test_a_picture_that_a_program_draws_is_not_lost() -> None:
    @ez_tool(effect="program")
    async def run_code(code: str) -> Any:
        """Run code."""
        return Media("image/png", b"\x89PNG\xff")

    run = Run(features=[Provenance()])
    memory_of(run).read("read_mail", "c1", {}, "hello", "untrusted")

    await Pipeline([run_code]).run(ToolCall("run_code", {"code": "plot()"}), run)
    memory_of(run).settle()

    assert not memory_of(run).is_full


JOINED: list[Callable[[str, str], str]] = [
    lambda first, last: f"{first.capitalize()}{last.capitalize()}",
    lambda first, last: " ".join(first + last),
    lambda first, last: f"{first[:2]}-{first[2:]} {last[:2]}<b></b>{last[2:]}",
    lambda first, last: f"{last} {first}",
]


@settings(max_examples=examples(100), deadline=None)
@given(st.text("bdfgk", min_size=6, max_size=9), st.text("lmnpr", min_size=6, max_size=9), st.sampled_from(JOINED))
def test_the_longer_words_of_a_private_text_are_found_joined_parted_or_turned(
    first: str, last: str, join: Callable[[str, str], str]
) -> None:
    made = Memory()
    made.hear("write hello to ann@corp.com")
    made.read("diary", "c1", {}, f"As I was told, {first} will, as it is, {last} with all of them", "trusted", ())

    def asked(text: str) -> bool:
        return made.judge("send", "send", {"to": "ann@corp.com", "text": text}, frozenset(["text"])) != []

    assert asked(f"hello {join(first, last)}")
    assert not asked("hello Ann, as you were told")


@pytest.mark.parametrize("text", ["www\\u002eevil\\u002ecom", "eve\\u0040evil.com", "https:\\u002f\\u002fevil"])
def test_a_link_in_escapes_of_json_is_a_link(text: str) -> None:
    made = memory("hello")

    assert made.judge("send", "send", {"to": "Ann", "text": text}, frozenset(["text"])) != []
