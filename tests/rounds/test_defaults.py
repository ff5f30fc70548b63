"""Defaults and values of an enum, as each provider is shown them: what is shown is what the tool takes."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from tests.formats.replies import NAMES, Asked, whole
from tests.rounds.endings import begins
from toolcrib import Toolkit
from toolcrib.formats import WireFormat
from toolcrib.rounds import Transcript, decode
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


class Color(Enum):
    RED = "red"
    BLUE = "blue"


CALLED: list[tuple[Any, ...]] = []


@ez_tool
def paint(
    color: Literal[Color.RED],
    coats: Annotated[int, Field(default=3, ge=1)],
    tags: Annotated[list[str], Field(default_factory=list)],
) -> str:
    """Paint a wall."""
    CALLED.append((color, coats, tags))
    return "painted"


@pytest.fixture
def called() -> list[tuple[Any, ...]]:
    CALLED.clear()
    return CALLED


@pytest.mark.parametrize("format", NAMES)
async def test_a_default_in_annotated_and_a_member_of_an_enum_are_taken_as_shown(
    format: WireFormat, called: list[tuple[Any, ...]]
) -> None:
    [shown] = Toolset([paint]).definitions(format=format)
    transcript = begins(format)

    for arguments in ({"color": "red"}, {"color": "red", "coats": 1, "tags": ["a"]}, {"color": "blue"}):
        asked = [Asked(f"abcdefgh{len(transcript)}", "paint", arguments)]
        await decode([paint], whole(format, "", asked), format=format, transcript=transcript).run(transcript)

    assert '"red"' in json.dumps(shown)
    assert '"blue"' not in json.dumps(shown)
    assert called == [(Color.RED, 3, []), (Color.RED, 1, ["a"])]
    assert Transcript(transcript, format).check() == []


@pytest.mark.parametrize("format", NAMES)
def test_only_what_has_no_default_is_required(format: WireFormat) -> None:
    shown = json.dumps(Toolset([paint]).definitions(format=format))

    assert '"required": ["color"]' in shown


def test_a_default_of_a_factory_shows_in_the_stub() -> None:
    prompt = Toolkit([paint]).prompt()

    assert "coats: int = 3, tags: list[str] = ..." in prompt
