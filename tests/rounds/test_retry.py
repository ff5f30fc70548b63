"""Sessions that ask their model again after an error of the server's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from cohere.core.api_error import ApiError

from tests.rounds.endings import stopped
from tests.rounds.replies import FORMATS, adding
from toolcrib.calls import ToolCall
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import Finished, Retry, Session, WireFormat
from toolcrib.testing import FakeClock, ScriptedModel, wire_reply


class StatusError(Exception):
    """An SDK's exception for a response of the server's."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.response = type("Response", (), {"status_code": status, "headers": headers or {}})()


class APIConnectionError(Exception):
    """An SDK's exception for a connection that failed."""


class Amazons(Exception):
    """An exception of boto3."""

    def __init__(self) -> None:
        self.response = {"ResponseMetadata": {"HTTPStatusCode": 503}}


class Noted(FakeClock):
    """A clock that goes on with each pause, and notes it."""

    def __init__(self, pauses: list[float]) -> None:
        super().__init__()
        self.pauses = pauses

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)


def waiting(pauses: list[float], **options: Any) -> Retry:
    """Return a retry that notes its pauses and takes no time."""
    return Retry(clock=Noted(pauses), **options)


FAILURES: tuple[Exception, ...] = (
    *map(StatusError, (500, 529, 429, 408)),
    ConnectionError(),
    TimeoutError(),
    APIConnectionError(),
    Amazons(),
)


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
async def test_an_error_of_the_server_is_asked_again(failure: Exception) -> None:
    pauses: list[float] = []
    model = ScriptedModel(failure, failure, "Hello.")

    answer = await Session(model, retry=waiting(pauses, first=2)).say("Hi.").run()

    assert (answer.result, pauses, len(model.requests)) == ("Hello.", [2, 4], 3)


@pytest.mark.parametrize("failure", [StatusError(400), StatusError(401), StatusError(404), ValueError("no")], ids=repr)
async def test_an_error_of_the_request_is_not(failure: Exception) -> None:
    pauses: list[float] = []

    with pytest.raises(type(failure)):
        await Session(ScriptedModel(failure), retry=waiting(pauses)).say("Hi.").run()

    assert pauses == []


@pytest.mark.parametrize("format", FORMATS)
async def test_a_reply_that_ended_in_an_error_is_asked_again_and_both_are_used(format: WireFormat) -> None:
    pauses: list[float] = []
    ran: list[Any] = []
    word = next((word for word, kind in PROVIDERS[format].stops.items() if kind == "error"), "error")
    broken = stopped(format, wire_reply(format, [ToolCall("add", {"a": 1}, "call_1")]), word)
    session = Session(ScriptedModel(broken, "Hello."), format=format, tools=[adding(ran)], retry=waiting(pauses))

    answer = await session.say("Hi.").run()

    assert isinstance(answer, Finished)
    assert (answer.result, pauses, ran) == ("Hello.", [1], [])
    assert (answer.usage.requests, session.usage.requests) == (2, 2)


async def test_what_fails_to_the_end_is_raised_or_returned_as_it_is() -> None:
    pauses: list[float] = []
    session = Session(ScriptedModel(*[StatusError(503)] * 3), retry=waiting(pauses, times=2, longest=1.5)).say("Hi.")

    with pytest.raises(StatusError, match="503"):
        await session.run()

    assert pauses == [1, 1.5]


async def test_an_exception_of_cohere_has_the_headers_itself() -> None:
    waited: list[float] = []
    busy = ApiError(status_code=429, headers={"retry-after": "7"})

    await Session(ScriptedModel(busy, "Hello."), retry=waiting(waited)).say("Hi.").run()

    assert waited == [7]


@pytest.mark.parametrize(("wanted", "pauses"), [("7", [7]), ("0.5", [1]), ("soon", [1]), ("100", None)])
async def test_a_server_says_how_long_it_wants_to_be_left_alone(wanted: str, pauses: list[float] | None) -> None:
    waited: list[float] = []
    model = ScriptedModel(StatusError(429, {"retry-after": wanted}), "Hello.")
    session = Session(model, retry=waiting(waited)).say("Hi.")

    if pauses is None:
        with pytest.raises(StatusError):
            await session.run()
    else:
        await session.run()

    assert waited == (pauses or [])


async def test_a_server_may_give_a_date_until_which_it_wants_to_be_left_alone() -> None:
    waited: list[float] = []
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    session = Session(ScriptedModel(StatusError(429, {"retry-after": until}), "Hello."), retry=waiting(waited))

    await session.say("Hi.").run()

    assert waited == [pytest.approx(40, abs=20)]  # the date has whole seconds, and the machine may be busy


async def test_a_reply_of_which_a_part_was_shown_is_not_asked_for_again() -> None:
    pauses: list[float] = []
    texts: list[str] = []

    async def breaks(request: Any) -> Any:
        yield {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}
        raise StatusError(500)

    class Model:
        def reply(self, request: Any) -> Any:
            return breaks(request)

    with pytest.raises(StatusError):
        await Session(Model(), retry=waiting(pauses)).say("Hi.").step(on_text=texts.append)

    assert (texts, pauses) == (["Hel"], [])


def test_a_retry_takes_no_negative_number() -> None:
    with pytest.raises(ValueError, match="Retry: times must be at least 0, and is -1"):
        Retry(times=-1)
