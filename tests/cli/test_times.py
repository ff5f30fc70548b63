"""Times of options: spans, dates and times of day."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import typer

from toolcrib.calls import now
from toolcrib.cli._times import time_of


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026-11-29", datetime(2026, 11, 29), datetime(2026, 11, 30)),
        ("20261231", datetime(2026, 12, 31), datetime(2027, 1, 1)),
        ("2026-11-29T00:00", datetime(2026, 11, 29), datetime(2026, 11, 29)),
        ("2026-11-29 12:30", datetime(2026, 11, 29, 12, 30), datetime(2026, 11, 29, 12, 30)),
    ],
)
def test_a_day_is_the_whole_of_it(text: str, begins: datetime, ends: datetime) -> None:
    since, until = time_of(text, "--since"), time_of(text, "--until", to_end=True)

    assert (since, until) == (begins.astimezone(), ends.astimezone())


def test_an_answer_may_hold_until_the_end_of_today() -> None:
    today = datetime.now().date()

    ends = time_of(today.isoformat(), "--expires", ahead=True, to_end=True)

    assert ends is not None
    assert ends.astimezone().date() == today + timedelta(days=1)
    assert ends > now()


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "9999-12-31"])
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time; write how long ago"):
        time_of(text, "--until", to_end=True)
