"""Wire formats: definitions, replies, streams, results and transcripts as providers write them, to and from values.

There is one module for each format, and one table of them. Nothing here runs a tool or sends a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib._lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.formats._canonical_json import (
        arguments_object,
        arguments_text,
        canonical,
        raw_arguments,
        read_stored,
        stored,
    )
    from toolcrib.formats._format import Declaration, ProviderFormat, ToolFormat
    from toolcrib.formats._growing_object import GrowingObject
    from toolcrib.formats._json_reading import json_shape
    from toolcrib.formats._mistral import MistralFunction, MistralTool
    from toolcrib.formats._openai import OpenAIFunction, OpenAITool
    from toolcrib.formats._provider_client import ProviderClient
    from toolcrib.formats._provider_options import NO_OPTIONS, Caller, Grammar, ProviderOptions, text_parameter
    from toolcrib.formats._provider_parts import ProviderPart, provider_parts, reply_parts
    from toolcrib.formats._result_pairing import Layout
    from toolcrib.formats._sent_names import own_arguments
    from toolcrib.formats._stop_kinds import FINISHED, StopKind, ending
    from toolcrib.formats._strict_schema import without_filler
    from toolcrib.formats._switching import SwitchedItems, switched
    from toolcrib.formats._table import (
        FORMATS,
        PROVIDERS,
        FormatName,
        Refused,
        WireFormat,
        definition,
        definitions,
        detected,
        refuse_part,
        text_delta,
        tokens_in,
    )
    from toolcrib.formats._usage import Tokens
    from toolcrib.formats._user_words import UserWords, user_words
    from toolcrib.formats._wire import (
        CallPiece,
        Choice,
        Item,
        ProblemKind,
        TranscriptProblem,
        WireCall,
        WireReply,
        WireResult,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._canonical_json": "arguments_object arguments_text canonical raw_arguments read_stored stored",
            "._format": "Declaration ProviderFormat ToolFormat",
            "._growing_object": "GrowingObject",
            "._json_reading": "json_shape",
            "._mistral": "MistralFunction MistralTool",
            "._openai": "OpenAIFunction OpenAITool",
            "._provider_client": "ProviderClient",
            "._provider_options": "NO_OPTIONS Caller Grammar ProviderOptions text_parameter",
            "._provider_parts": "ProviderPart provider_parts reply_parts",
            "._result_pairing": "Layout",
            "._sent_names": "own_arguments",
            "._stop_kinds": "FINISHED StopKind ending",
            "._strict_schema": "without_filler",
            "._switching": "SwitchedItems switched",
            "._table": (
                "FORMATS PROVIDERS FormatName Refused WireFormat definition definitions detected refuse_part "
                "text_delta tokens_in"
            ),
            "._usage": "Tokens",
            "._user_words": "UserWords user_words",
            "._wire": "CallPiece Choice Item ProblemKind TranscriptProblem WireCall WireReply WireResult",
        },
    )

__all__ = [
    "FINISHED",
    "FORMATS",
    "NO_OPTIONS",
    "PROVIDERS",
    "CallPiece",
    "Caller",
    "Choice",
    "Declaration",
    "FormatName",
    "Grammar",
    "GrowingObject",
    "Item",
    "Layout",
    "MistralFunction",
    "MistralTool",
    "OpenAIFunction",
    "OpenAITool",
    "ProblemKind",
    "ProviderClient",
    "ProviderFormat",
    "ProviderOptions",
    "ProviderPart",
    "Refused",
    "StopKind",
    "SwitchedItems",
    "Tokens",
    "ToolFormat",
    "TranscriptProblem",
    "UserWords",
    "WireCall",
    "WireFormat",
    "WireReply",
    "WireResult",
    "arguments_object",
    "arguments_text",
    "canonical",
    "definition",
    "definitions",
    "detected",
    "ending",
    "json_shape",
    "own_arguments",
    "provider_parts",
    "raw_arguments",
    "read_stored",
    "refuse_part",
    "reply_parts",
    "stored",
    "switched",
    "text_delta",
    "text_parameter",
    "tokens_in",
    "user_words",
    "without_filler",
]
