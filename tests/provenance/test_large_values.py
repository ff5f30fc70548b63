"""Large values: what is looked up for them is off the event loop, in its turn, and is what a small part of it gives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from toolcrib.calls import Media, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Memory, Provenance, memory_of
from toolcrib.provenance._kinds import dates_in, measures_in, near_digits, numbers_in, times_in
from toolcrib.provenance._links import hosts_in, shown_words
from toolcrib.provenance._private import PrivateValues
from toolcrib.tools import ez_tool

SECRET = "the card is 4417 1234 5678"
TEXT = "It was a fine day, and nothing was the matter with anybody. "


@ez_tool(effect="none", source="trusted", readers=[])
async def diary() -> str:
    """Read the diary."""
    return SECRET


@ez_tool(effect="send", content=["text"])
async def send(to: str, text: str) -> str:
    """Send a text."""
    return "sent"


@ez_tool(effect="send", content=["things"])
async def send_things(to: str, things: Any) -> str:
    """Send some things."""
    return "sent"


@ez_tool(effect="none")
async def read_mail() -> str:
    """Read the mail."""
    return "hello"


def running() -> Run:
    run = Run(features=[Provenance()])
    run.add_user_message("tell bob@corp.com of my day")
    return run


@pytest.mark.parametrize(("times", "is_off_the_loop"), [(1, False), (500, True)])
async def test_a_large_value_is_looked_up_off_the_event_loop(times: int, is_off_the_loop: bool) -> None:
    pipeline, run = Pipeline([diary, send]), running()
    await pipeline.run(ToolCall("diary", {}), run)
    text = f"{TEXT * times}{SECRET}"

    call = asyncio.create_task(pipeline.run(ToolCall("send", {"to": "bob@corp.com", "text": text}), run))
    await asyncio.sleep(0)

    assert call.done() is not is_off_the_loop
    outcome = await call
    assert isinstance(outcome, Suspended)
    assert "comes from `diary`, and may not be sent to them" in str(outcome.request.reason)


@pytest.mark.parametrize(
    "things",
    [[f"{number % 90:02}" for number in range(1_000)], {"k" * 6_000: 1}, [[] for _ in range(1_000)]],
    ids=["many small values", "a long key", "many empty lists"],
)
async def test_what_takes_as_long_as_a_large_value_is_looked_up_off_the_event_loop_too(things: Any) -> None:
    pipeline, run = Pipeline([diary, send_things]), running()
    await pipeline.run(ToolCall("diary", {}), run)

    call = asyncio.create_task(pipeline.run(ToolCall("send_things", {"to": "bob@corp.com", "things": things}), run))
    await asyncio.sleep(0)

    assert not call.done()
    await call


@pytest.mark.parametrize(
    "value", [[""] * 20_000, [1] * 20_000, "\ufdfa" * 30_000], ids=["nothing", "digits", "characters for 18 others"]
)
def test_a_run_keeps_no_more_than_it_has_room_for_however_small_its_values_look(value: Any) -> None:
    made = Memory()
    made.read("read_mail", "c1", {}, "a" * 19_500_000, "untrusted")  # of twenty million characters
    before = made.is_full

    made.read("read_mail", "c2", {}, value, "untrusted")

    assert (before, made.is_full) == (False, True)


def test_private_values_that_are_not_kept_any_more_are_for_those_who_may_read_all() -> None:
    values = PrivateValues()
    values.add(" ".join(f"word{number}" for number in range(260_000)), 0, frozenset({"ann", "bob"}))
    kept = values.is_full, values.readers

    values.add("a private word", 1, frozenset({"bob"}))

    assert kept == (True, {"ann", "bob"})
    assert (values.is_full, values.readers) == (True, {"bob"})
    assert not [*values.within("a private word", frozenset())]


async def test_large_values_of_calls_at_once_are_each_asked_about_and_what_is_read_meanwhile_is_read() -> None:
    pipeline, run = Pipeline([diary, read_mail, send]), running()
    await pipeline.run(ToolCall("diary", {}), run)
    texts = [f"{SECRET}{TEXT * times}" for times in (200, 1, 300)]

    *sent, _ = await asyncio.gather(
        *(pipeline.run(ToolCall("send", {"to": "bob@corp.com", "text": text}), run) for text in texts),
        pipeline.run(ToolCall("read_mail", {}), run),
    )
    made = memory_of(run)
    made.settle()

    assert [isinstance(outcome, Suspended) for outcome in sent] == [True, True, True]
    assert made.origin("hello").kind == "untrusted"


async def test_an_approval_of_a_large_value_holds() -> None:
    pipeline, run = Pipeline([diary, send]), running()
    await pipeline.run(ToolCall("diary", {}), run)
    call = ToolCall("send", {"to": "bob@corp.com", "text": f"{TEXT * 300}{SECRET}"})

    asked = await pipeline.run(call, run)
    assert isinstance(asked, Suspended)
    first = await pipeline.run(asked, run, grant=asked.request.grant())
    again = await pipeline.run(call, run)

    assert (first.kind, again.kind) == ("completed", "completed")


def test_a_check_comes_after_what_waits_to_be_read_and_fails_by_itself() -> None:
    made = Memory()
    made.hear("hello")
    kinds = list[str]()

    def fail() -> str:
        raise ValueError("of one call")

    failed = made.wait_for_check(fail)
    before = made.wait_for_check(lambda: made.origin("eve@evil.com").kind)
    reads = [made.reads_others]
    made.wait(lambda: made.read("read_mail", "c1", {}, "eve@evil.com", "untrusted"))
    reads.append(made.reads_others)
    after = made.wait_for_check(lambda: made.origin("eve@evil.com").kind)
    made.settle()
    kinds += [before.result(), after.result()]

    assert reads == [False, True]
    assert kinds == ["derived", "untrusted"]
    with pytest.raises(ValueError, match="of one call"):
        failed.result()


async def test_a_file_that_comes_while_other_text_waits_to_be_read_is_private() -> None:
    @ez_tool(effect="none", source="trusted", readers=[])
    async def photo() -> Media:
        """Return a photo."""
        return Media("image/png", b"\x89PNG\xff", name="at-the-sea.png")

    run, pipeline = running(), Pipeline([photo, send])
    made = memory_of(run)
    made.wait(lambda: made.read("read_mail", "c1", {}, "hello", "untrusted"))

    await pipeline.run(ToolCall("photo", {}), run)
    outcome = await pipeline.run(ToolCall("send", {"to": "bob@corp.com", "text": "see at-the-sea.png"}), run)

    assert isinstance(outcome, Suspended)


# --- what is near digits, and what is found by its beginning

FAR = "filler words that say nothing at all about it and so go on and on for some while"
PIECES = st.sampled_from(
    [
        *("may", "september.", "of", "the", "to", "until", "and", "-", "1st", "5th", "31", "2026", "2026-05-01"),
        *("2026-05-01T10:30", "10:30", "10:30:00.0", "3 pm", "3p.m.", "1,250", "1.250,00", "17.30", "0042", "#7"),
        *("$50", "\u20ac 12,50", "10%", "(1,200)", "1 200 300", "1'250", "5 eur", "hundred", "that 10.00", "the"),
        *("a@b.com", "www.x.de", "x..y.z", "..a.b", "12.0.0.1", "v1.2", "april", "a_b", "_x_", "*y*", "\\", "%41"),
        *(".", ",", ":", "!!!", "(", ")", "\n", FAR, FAR.replace(" ", ""), "\u0663", "5/6/2027"),
    ]
)
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from([" ", " ", ""])), max_size=40).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)


def numbers_of(text: str) -> list[object]:
    return [
        [*numbers_in(text, is_loose=True)],
        [*numbers_in(text, is_loose=False)],
        [*dates_in(text)],
        [*dates_in(text, is_strict=True)],
        [*times_in(text)],
        [*measures_in(text)],
    ]


@settings(max_examples=examples(500), deadline=None)
@given(TEXTS)
def test_the_numbers_of_a_text_stand_in_what_is_near_its_digits(text: str) -> None:
    assert numbers_of(near_digits(text)) == numbers_of(text)


def test_what_is_far_from_all_digits_is_left_out_and_one_long_word_is_gone_through_once() -> None:
    text = f"{FAR} {FAR} in room 7 of {FAR} {FAR}"
    word = f"{'x' * 70}7" * 20_000

    assert FAR not in near_digits(text)
    assert "in room 7 of" in near_digits(text)
    assert near_digits(word) == word


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS)
def test_the_hosts_of_a_text_are_those_of_its_words(text: str) -> None:
    plain = " ".join(text.split())

    assert [*hosts_in(plain, is_loose=True)] == [
        host for word in plain.split(" ") for host in hosts_in(word, is_loose=True)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("write _eve@evil.com_ now", "write eve@evil.com now"),
        ("a b c d e f **eve**@evil.com", "c d e f eve@evil.com"),
        ("snake_case of 10 @ home", ""),
        ("%65ve@evil.com\n\n&#101;ve", "eve@evil.com eve"),
    ],
)
def test_words_with_marks_are_shown_with_those_beside_them(text: str, shown: str) -> None:
    assert shown_words(text) == shown


def test_private_words_that_are_joined_are_found_in_each_length() -> None:
    values = PrivateValues()
    for number, name in enumerate(["a b c d e", "plan of ann lee and bo", "plan of ann lee and bo in may 2026"]):
        values.add_name(name, number, frozenset())

    found = [piece for piece, *_ in values.within("see abcde and the planofannleeandboinmay2026", frozenset({"eve"}))]

    assert found == ["+abcde", "+planofannleeandbo", "+planofannleeandboinmay2026"]
