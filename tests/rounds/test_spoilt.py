"""Nothing runs of a spoilt reply with arguments that did not come, and what is committed the provider takes."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.rounds.spoilt import HELD, disturb_each_piece, spoil_many
from toolcrib.rounds import WireFormat


@pytest.mark.parametrize("format", HELD)
async def test_no_spoilt_reply_runs_what_did_not_come(format: WireFormat) -> None:
    assert await spoil_many(format, examples(1_000)) > 0


@pytest.mark.parametrize("format", HELD)
async def test_no_reply_runs_whose_piece_came_for_no_call_or_with_no_type(format: WireFormat) -> None:
    assert await disturb_each_piece(format) > 0
