"""Rounds: a loop that its host owns. A reply is decoded, its calls decided on, executed by the host, and committed.

Nothing here runs a tool or asks a gate itself: `pipeline` does. Transcripts are the providers' own message lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.formats import WireFormat, detected, text_delta
    from toolcrib.rounds._call import (
        Answer,
        DecodedCall,
        HandledTool,
        RejectedTool,
        RoundHook,
        RoundHooks,
        SuspendedTool,
    )
    from toolcrib.rounds._call_progress import CallListener, CallProgress
    from toolcrib.rounds._chat_model import ChatModel, ChatRequest
    from toolcrib.rounds._client_model import ClientModel, client_model
    from toolcrib.rounds._model_judge import ModelJudge
    from toolcrib.rounds._plan import ToolRoundPlan
    from toolcrib.rounds._priced_model import PricedModel
    from toolcrib.rounds._recalled import recall_transcript
    from toolcrib.rounds._results import ToolCallIssue, ToolResult, rejection_reason
    from toolcrib.rounds._retry import Retry
    from toolcrib.rounds._round import DecodeKeywords, ToolRound, decode, decode_stream
    from toolcrib.rounds._session import Session
    from toolcrib.rounds._step import (
        Continue,
        Finished,
        NeedsTools,
        SessionResult,
        StepKeywords,
        Stopped,
        Waiting,
    )
    from toolcrib.rounds._transcript import Transcript
    from toolcrib.rounds._unhandled import Unhandled
    from toolcrib.rounds._usage import Usage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "toolcrib.formats": "WireFormat detected text_delta",
            "._call": "Answer DecodedCall HandledTool RejectedTool RoundHook RoundHooks SuspendedTool",
            "._call_progress": "CallListener CallProgress",
            "._chat_model": "ChatModel ChatRequest",
            "._client_model": "ClientModel client_model",
            "._model_judge": "ModelJudge",
            "._plan": "ToolRoundPlan",
            "._priced_model": "PricedModel",
            "._recalled": "recall_transcript",
            "._results": "ToolCallIssue ToolResult rejection_reason",
            "._retry": "Retry",
            "._round": "DecodeKeywords ToolRound decode decode_stream",
            "._session": "Session",
            "._step": "Continue Finished NeedsTools SessionResult StepKeywords Stopped Waiting",
            "._transcript": "Transcript",
            "._unhandled": "Unhandled",
            "._usage": "Usage",
        },
    )

__all__ = [
    "Answer",
    "CallListener",
    "CallProgress",
    "ChatModel",
    "ChatRequest",
    "ClientModel",
    "Continue",
    "DecodeKeywords",
    "DecodedCall",
    "Finished",
    "HandledTool",
    "ModelJudge",
    "NeedsTools",
    "PricedModel",
    "RejectedTool",
    "Retry",
    "RoundHook",
    "RoundHooks",
    "Session",
    "SessionResult",
    "StepKeywords",
    "Stopped",
    "SuspendedTool",
    "ToolCallIssue",
    "ToolResult",
    "ToolRound",
    "ToolRoundPlan",
    "Transcript",
    "Unhandled",
    "Usage",
    "Waiting",
    "WireFormat",
    "client_model",
    "decode",
    "decode_stream",
    "detected",
    "recall_transcript",
    "rejection_reason",
    "text_delta",
]
