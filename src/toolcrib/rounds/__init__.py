"""Rounds: a loop that its host owns. A reply is decoded, its calls decided on, executed by the host, and committed.

Nothing here runs a tool or a gate itself: `invoke` does. Transcripts are the providers' own message lists.
"""

from toolcrib.formats import WireFormat, detected, text_delta
from toolcrib.rounds._call import DecodedCall, RoundHook, RoundHooks
from toolcrib.rounds._fences import unfenced
from toolcrib.rounds._model import ChatModel, ChatRequest
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
from toolcrib.rounds._round import DecodeKeywords, ToolRound, decode, decode_stream
from toolcrib.rounds._session import Finished, NeedsTools, Session, StepKeywords
from toolcrib.rounds._transcript import Transcript

__all__ = [
    "Answer",
    "AwaitingTool",
    "ChatModel",
    "ChatRequest",
    "DecodeKeywords",
    "DecodedCall",
    "Finished",
    "HandledTool",
    "NeedsTools",
    "RejectedTool",
    "RoundHook",
    "RoundHooks",
    "Session",
    "StepKeywords",
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
    "text_delta",
    "unfenced",
]
