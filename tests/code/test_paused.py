"""The paused program as bytes: whole, or refused with the reason."""

from __future__ import annotations

from typing import Annotated

import pytest

from toolcrib.code import PausedProgram, Toolkit
from toolcrib.errors import PausedProgramError
from toolcrib.schema import Redacted
from toolcrib.testing import FakeSandbox
from toolcrib.tools import ez_tool

KEY = b"a key of more than sixteen bytes"


@ez_tool
async def find(city: str) -> dict[str, int]:
    return {city: 1}


@ez_tool(requires_approval=True)
async def book(city: str, card: Annotated[str, Redacted] = "") -> str:
    return city


@pytest.fixture
def paused() -> PausedProgram:
    """Return a program that has found a city and waits to book one."""
    calls = ("find", {"city": "Ålesund"}), ("book", {"city": "Ålesund", "card": "4000 1234"})
    result = Toolkit([find, book], sandbox=FakeSandbox(*calls)).execute("# find, then book:")
    assert result.paused is not None
    return result.paused


def test_what_is_written_is_what_is_read(paused: PausedProgram) -> None:
    back = PausedProgram.from_bytes(paused.to_bytes(KEY), KEY)

    assert back == paused
    assert back.to_dict() == paused.to_dict()
    assert (back.code, back.engine, back.tools[:2]) == ("# find, then book:", "fake-1", ("find", "book"))


def test_it_says_what_it_waits_for_without_secrets(paused: PausedProgram) -> None:
    [call] = PausedProgram.from_bytes(paused.to_bytes(KEY), KEY).suspended_calls

    assert (call.tool, call.arguments) == ("book", {"city": "Ålesund", "card": "[redacted]"})
    assert "4000" not in call.request.text()


def test_a_key_may_be_text(paused: PausedProgram) -> None:
    assert PausedProgram.from_bytes(paused.to_bytes(KEY.decode()), KEY) == paused


def test_a_short_key_is_refused(paused: PausedProgram) -> None:
    with pytest.raises(ValueError, match=r"has 5 bytes, and must have 16"):
        paused.to_bytes("short")


def test_another_key_is_refused(paused: PausedProgram) -> None:
    with pytest.raises(PausedProgramError, match="another key, or it was changed or cut"):
        PausedProgram.from_bytes(paused.to_bytes(KEY), b"another key of the same length..")


def test_every_change_and_every_cut_is_refused(paused: PausedProgram) -> None:
    data = paused.to_bytes(KEY)

    for at in range(0, len(data), 7):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        for bad in (changed, data[:at]):
            with pytest.raises(PausedProgramError):
                PausedProgram.from_bytes(bad, KEY)


def test_another_format_is_named(paused: PausedProgram) -> None:
    data = paused.to_bytes(KEY).replace(b"toolcrib-paused 1\n", b"toolcrib-paused 2\n")

    with pytest.raises(PausedProgramError, match="written in format 2, and this version of toolcrib reads 1"):
        PausedProgram.from_bytes(data, KEY)


def test_another_text_than_the_one_that_paused_is_refused(paused: PausedProgram) -> None:
    data = paused.to_dict() | {"code": "# another"}

    with pytest.raises(PausedProgramError, match="does not fit the hash"):
        PausedProgram.from_dict(data)


def test_what_is_none_is_refused() -> None:
    for data in (b"", b"{}", b"\n\n", b"\x00" * 100):
        with pytest.raises(PausedProgramError, match="its first line is missing"):
            PausedProgram.from_bytes(data, KEY)
