"""Standing grants that count at times of the week: what their words say is when calls run."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Pipeline, Run, Suspended, ToolCall, tool
from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore, misfit
from toolcrib.calls import ApprovalRequest, Bound, Grant, TimesOfDay, now
from toolcrib.errors import ApprovalError

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WORDS = re.compile(r"from (\d\d:\d\d) to (\d\d:\d\d)( of the next day)? (every day|on .*?) \(([A-Za-z0-9_+/-]+)\)")
HOUR = timedelta(hours=1)


@tool(requires_approval=True)
async def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


def around(start: timedelta, end: timedelta) -> TimesOfDay:
    """Return the times from a span after now to another one."""
    begin, until = ((now() + span).time().replace(second=0, microsecond=0) for span in (start, end))
    return TimesOfDay(begin, until)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("mon-fri 09:00-17:00 Europe/Berlin", "from 09:00 to 17:00 on Monday to Friday (Europe/Berlin)"),
        ("9:00-17:30", "from 09:00 to 17:30 every day (UTC)"),
        ("22:00-06:00 UTC", "from 22:00 to 06:00 of the next day every day (UTC)"),
        ("sat,sun 00:00-24:00", "from 00:00 to 24:00 on Saturday, Sunday (UTC)"),
        ("Fri-Mon 17:00 - 24:00", "from 17:00 to 24:00 on Monday, Friday, Saturday, Sunday (UTC)"),
    ],
)
def test_times_are_typed_and_told_in_words(typed: str, words: str) -> None:
    times = TimesOfDay.parse(typed)

    assert times.text() == words
    assert TimesOfDay.parse(times.typed()) == times


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("9-5", "is not a time of day: write a time from and to"),
        ("09:00-25:00", "'25:00' is not a time of day"),
        ("moon 09:00-10:00", "'moon' is not a day"),
        ("09:00-09:00", "00:00-24:00 is the whole day"),
        ("09:00-10:00 Mars/Base", "'Mars/Base' is not a time zone here"),
        ("09:00-10:00 Europe", "'Europe' is not a time zone here"),
    ],
)
def test_what_is_no_time_of_day_is_an_error_that_says_what_to_write(typed: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TimesOfDay.parse(typed)


# --- nothing runs at a time that the words do not say

_clock = st.builds(time, st.integers(0, 23), st.sampled_from([0, 30]))
_times = st.builds(
    lambda begin, end, days, zone: TimesOfDay(begin, end if end != begin else time(), tuple(days), zone),
    _clock.filter(lambda one: one != time()),
    _clock,
    st.sets(st.integers(0, 6)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"]),
)
_at = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))


def said(words: str, at: datetime) -> bool:
    """Return whether a time is one that the words of a grant say, read as a person reads them."""
    found = WORDS.search(words)
    assert found is not None, words
    begin, end, next_day, on, zone = found.groups()
    days = {*DAYS} if on == "every day" else {*on.removeprefix("on ").split(", ")}
    if " to " in on:
        first, last = on.removeprefix("on ").split(" to ")
        days = {*DAYS[DAYS.index(first) : DAYS.index(last) + 1]}
    local = at.astimezone(ZoneInfo(zone))
    clock, today, yesterday = f"{local:%H:%M}", DAYS[local.weekday()], DAYS[local.weekday() - 1]
    if next_day is None:
        return today in days and begin <= clock < end
    return (today in days and clock >= begin) or (yesterday in days and clock < end)


@given(_times, st.lists(_at, min_size=1, max_size=20), st.one_of(st.none(), _at))
def test_a_grant_counts_exactly_when_its_words_say(
    times: TimesOfDay, moments: list[datetime], until: datetime | None
) -> None:
    request = ApprovalRequest("ask_1", "call_1", "refund", {"amount": 5}, "d", principal="ann")
    bounds = {"amount": Bound.between(high=50)}
    grant = Grant("refund", "bob", request_id="ask_0", scope="within", within=bounds, principal="ann", times=times)
    ends = Grant.from_dict({**grant.to_dict(), "expires_at": None if until is None else until.isoformat()})

    for at in moments:
        is_over = until is not None and until <= at
        assert (misfit(ends, request, at) == "") is (said(ends.text(), at) and not is_over)


# --- calls


@pytest.mark.parametrize("kind", ["memory", "sqlite", "run"])
async def test_calls_run_at_the_times_and_are_asked_about_at_others(kind: str, tmp_path: Path) -> None:
    store = MemoryApprovalStore() if kind == "memory" else SqliteApprovalStore(tmp_path / "a.db")
    kinds: list[str] = []
    for times in (around(-HOUR, HOUR), around(2 * HOUR, 3 * HOUR)):
        run = Run(principal="ann") if kind == "run" else Run(principal="ann", approvals=store)
        grant = Grant("refund", "bob", scope="tool", principal="ann", times=times)
        if kind == "run":
            run.add_standing_grant(grant)
        else:
            await store.answer(grant)
        kinds.append((await Pipeline([refund]).run(ToolCall("refund", {"amount": 5}), run)).kind)
        if kind != "run":
            assert await store.revoke(grant)

    assert kinds == ["completed", "suspended"]


async def test_a_call_does_not_begin_by_a_grant_whose_time_has_passed_since_the_gate() -> None:
    store = MemoryApprovalStore()
    waiting = await Pipeline([refund]).run(ToolCall("refund", {"amount": 5}), Run(principal="ann", approvals=store))
    assert isinstance(waiting, Suspended)
    grant = Grant("refund", "bob", scope="tool", principal="ann", times=around(2 * HOUR, 3 * HOUR))

    with pytest.raises(ApprovalError, match="it was given for calls from"):
        await store.begin(waiting.request, grant)


async def test_a_grant_for_other_times_does_not_answer_the_call_at_hand() -> None:
    request = ApprovalRequest("ask_1", "call_1", "refund", {"amount": 5}, "d", principal="ann")

    with pytest.raises(ValueError, match="it does not cover this call: it was given for calls from"):
        request.always("bob", times=around(2 * HOUR, 3 * HOUR))
    with pytest.raises(ValueError, match="`times` belongs to a standing grant"):
        request.grant("bob", times=around(-HOUR, HOUR))
    assert "on behalf of ann; from " in request.always("bob", times=around(-HOUR, HOUR)).text()
