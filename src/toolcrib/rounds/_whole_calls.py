"""The rule for which calls of a reply may run: those that came whole, in a reply that was finished."""

from __future__ import annotations

import json

from toolcrib.calls import cut
from toolcrib.formats import FINISHED, WireCall, WireReply, ending

__all__ = ["fault_of"]

_SHOWN = 300


def fault_of(call: WireCall, reply: WireReply) -> str:
    """Return why a call may not run, in words for the model; empty for one that may, if its arguments fit."""
    if reply.stop_kind in FINISHED and not call.fault:
        return ""
    why = ending(reply.stop_kind, reply.stop) or call.fault
    sent = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, default=str)
    came = "nothing" if sent in ("", "null") else f"`{cut(sent, _SHOWN)}`"
    return f"{why}, and of its arguments came {came}. Nothing ran; if it is still wanted, make the call again, whole"
