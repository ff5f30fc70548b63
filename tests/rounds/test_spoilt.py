"""Nothing runs of a spoilt reply with arguments that did not come, and what is committed the provider takes."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.rounds.spoilt import HELD, spoil_many
from toolcrib.rounds import WireFormat


@pytest.mark.parametrize("format", HELD)
async def test_no_spoilt_reply_runs_what_did_not_come(format: WireFormat) -> None:
    assert await spoil_many(format, examples(1_000)) > 0
