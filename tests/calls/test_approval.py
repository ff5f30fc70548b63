"""Requests for approval as JSON shapes: what a store keeps and a person is shown."""

from __future__ import annotations

import json

from toolcrib.calls import ApprovalRequest

HALF = "\ud83d"


def test_a_name_that_no_wire_takes_spoils_no_request() -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"a": HALF}, "d", metadata={HALF: 1, "seen": {HALF: 2}})

    kept = ApprovalRequest.from_dict(json.loads(json.dumps(asked.to_dict())))

    assert (kept.metadata[HALF], set(kept.metadata)) == (1, {HALF, "seen"})
    assert "refund needs approval" in kept.text()
