"""Parts of a call's state: what a person is asked about it, what came before it here, and how its execution goes."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from toolcrib import provenance
from toolcrib.calls import ApprovalRequest, Grant, KeptResult
from toolcrib.errors import InvalidArguments, SchemaError

__all__ = ["NOT_ASKED", "NOT_BEGUN", "NO_HISTORY", "Approval", "Execution", "History"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked about a call, and what they answered.

    Attributes:
        reasons: Why a person has to be asked.
        metadata: What they are shown besides the arguments.
        questions: The values of others that they are asked about.
        request: What they were asked last; None for a call that needed no approval so far.
        grant: Their answer, by which the call may run.
        digest: The digest of the arguments that were approved; None when no approval was needed.
    """

    reasons: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    questions: tuple[provenance.Question, ...] = ()
    request: ApprovalRequest | None = None
    grant: Grant | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What a call went through before it came to this run: in another process, or as an earlier copy.

    Attributes:
        runs: The ids of the runs that it came through; the first counted it when it came.
        trace: What the sinks of the process that suspended the call gave to those of this one; None for a new call.
        revealed: Whether its tool was found in one of these runs.
        hooks_lost: Whether it had decision hooks of its own in the process that wrote it as JSON, where they do not go.
        doubts: How often it was found begun and not known to have ended.
        original: The call that this is a later copy of: of all copies one is executed.
        mismatch: Why a call that was begun cannot be done any more: the tool has changed since, and does not take its
            arguments now.
        key: Names the call in its JSON and in all that is restored from that; empty for one that was never written.
    """

    runs: tuple[str, ...] = ()
    trace: Mapping[str, str] | None = None
    revealed: bool = False
    hooks_lost: bool = False
    doubts: int = 0
    original: Any = None
    mismatch: InvalidArguments | SchemaError | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Execution:
    """How the execution of a call goes.

    Attributes:
        seal: The digest of the arguments that the gates saw last; None where no other code could change them.
        entered: Whether the tool's function was called by code around it.
        gave_value: Whether the function has yielded a value.
        consumer_error: What the consumer of its values left with, before it asked for the next one.
        noted: How much of it the run's approval store knows; None for nothing.
        reports: The delivery of what the tool reported last; None where nothing is on its way.
        delivered: Whether the result, or each value of a stream as it came, passed the deliveries.
        kept: What is shown in the place of the result, where a result store keeps it.
    """

    seal: str | None = None
    entered: bool = False
    gave_value: bool = False
    consumer_error: BaseException | None = None
    noted: Literal["begun", "ended"] | None = None
    reports: Future[None] | None = None
    delivered: bool = False
    kept: KeptResult | None = None


NOT_ASKED = Approval()
NO_HISTORY = History()
NOT_BEGUN = Execution()
