"""Base of the adapters of other frameworks: members, calls, answers, gates, media and usage.

An adapter keeps what is the framework's own: the shapes of its calls, of what it asks, and of what its model is given.
No framework is imported here.
"""

from __future__ import annotations

from toolcrib.serving.frameworks._answers import (
    Given,
    answer_of,
    answer_payload,
    answered,
    is_as_seen,
    is_to_earlier,
    plain_grant,
    rebound,
    request_in,
    request_of_framework,
    request_payload,
    require_given,
    require_plain,
    require_stopped,
    unknown_call,
)
from toolcrib.serving.frameworks._guarded import GuardedTools
from toolcrib.serving.frameworks._media import MediaForms, media_at
from toolcrib.serving.frameworks._members import (
    AgentTools,
    FrameworkMember,
    gates_lost,
    provided,
    require_tools,
    without_others,
)
from toolcrib.serving.frameworks._runs import (
    ConversationRuns,
    CountedRequest,
    FrameworkRuns,
    OpenFrameworkRun,
    RecentValues,
    UsageNames,
    record_usage,
)
from toolcrib.serving.frameworks._tools import Answer, AskedCall, FrameworkTools

__all__ = [
    "AgentTools",
    "Answer",
    "AskedCall",
    "ConversationRuns",
    "CountedRequest",
    "FrameworkMember",
    "FrameworkRuns",
    "FrameworkTools",
    "Given",
    "GuardedTools",
    "MediaForms",
    "OpenFrameworkRun",
    "RecentValues",
    "UsageNames",
    "answer_of",
    "answer_payload",
    "answered",
    "gates_lost",
    "is_as_seen",
    "is_to_earlier",
    "media_at",
    "plain_grant",
    "provided",
    "rebound",
    "record_usage",
    "request_in",
    "request_of_framework",
    "request_payload",
    "require_given",
    "require_plain",
    "require_stopped",
    "require_tools",
    "unknown_call",
    "without_others",
]
