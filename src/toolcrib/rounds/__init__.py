"""Rounds: a loop that its host owns. A reply is decoded, its calls decided on, executed by the host, and committed.

Nothing here runs a tool or a gate itself: `invoke` does. Transcripts are the providers' own message lists.
"""

from toolcrib.rounds._call import DecodedCall, RoundHook, RoundHooks
from toolcrib.rounds._detect import WireFormat, detected
from toolcrib.rounds._plan import ToolRoundPlan
from toolcrib.rounds._results import (
    Answer,
    AwaitingTool,
    HandledTool,
    RejectedTool,
    ToolCallIssue,
    ToolResult,
    rejection_reason,
)
from toolcrib.rounds._round import ToolRound, decode, decode_stream
from toolcrib.rounds._transcript import Transcript

__all__ = [
    "Answer",
    "AwaitingTool",
    "DecodedCall",
    "HandledTool",
    "RejectedTool",
    "RoundHook",
    "RoundHooks",
    "ToolCallIssue",
    "ToolResult",
    "ToolRound",
    "ToolRoundPlan",
    "Transcript",
    "WireFormat",
    "decode",
    "decode_stream",
    "detected",
    "rejection_reason",
]
