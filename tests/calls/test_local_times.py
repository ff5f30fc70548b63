"""Times in words for a person."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolcrib.calls import ApprovalRequest, TimesOfDay

EVENING = datetime(2100, 7, 1, 16, 0, tzinfo=UTC)
REQUEST = ApprovalRequest("ask_1", "call_1", "refund", {"order": "A"}, "d")


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("Europe/Berlin", "until 2100-07-01 18:00 (Europe/Berlin)"),
        (":America/New_York", "until 2100-07-01 12:00 (America/New_York)"),
        ("UTC", "until 2100-07-01 16:00 (UTC)"),
    ],
)
def test_a_yes_says_until_when_by_the_clock_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, machine: str, said: str
) -> None:
    monkeypatch.setenv("TZ", machine)

    grant = REQUEST.always("ann", expires=EVENING)

    assert grant.text().endswith(said)
    assert grant.from_dict(grant.to_dict()).text() == grant.text()


def test_a_yes_for_times_of_the_week_says_all_times_by_their_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")

    grant = REQUEST.always("ann", expires=EVENING, times=TimesOfDay.parse("00:00-24:00 Asia/Tokyo"))

    assert "until 2100-07-02 01:00 (Asia/Tokyo); from 00:00 to 24:00 every day (Asia/Tokyo)" in grant.text()
