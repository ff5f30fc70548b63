"""Call: one request to run a tool, from its arrival to its record, as adapters and executors read it."""

from __future__ import annotations

import os
from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel

from toolcrib import calls
from toolcrib.calls import Failed, KeptResult, Outcome, StoredFields, Suspended, ToolCall, lenient
from toolcrib.errors import InvalidArguments, SchemaError
from toolcrib.pipeline._run import Run
from toolcrib.schema import RunContext
from toolcrib.tools import Tool
from toolcrib.toolsets import ToolEntry, Toolset

CallState: TypeAlias = Literal["received", "admitted", "suspended", "executing", "executed", "closed"]
"""The state of a call: see the states of a call."""


class Call(Protocol):
    """One request to run a tool, as an adapter reads it. Only the pipeline moves it.

    Its states are `received`, `admitted` (it passed every gate), `executing`, `executed` and `closed` (its record is
    made), or `suspended` while it waits for a person.
    """

    @property
    def id(self) -> str:
        """The id that approvals and records are bound to."""
        ...

    @property
    def name(self) -> str:
        """The tool's name in the toolset."""
        ...

    @property
    def tool(self) -> Tool[..., Any]:
        """The tool."""
        ...

    @property
    def run(self) -> Run:
        """The run that the call belongs to."""
        ...

    @property
    def received(self) -> ToolCall:
        """The call as received, or as an approver or the host changed it."""
        ...

    @property
    def state(self) -> CallState:
        """The state of the call."""
        ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """A copy of the arguments as Python values; final once the call is admitted."""
        ...

    @property
    def raw_arguments(self) -> Any:
        """The source of the input: the arguments as received, or as a hook edited them."""
        ...

    @property
    def entry(self) -> ToolEntry:
        """The tool in its toolset."""
        ...

    @property
    def toolset(self) -> Toolset:
        """The tools that it is one of."""
        ...

    @property
    def canonical_arguments(self) -> Mapping[str, Any]:
        """The arguments as JSON shapes: what is digested and sent."""
        ...

    @property
    def shown_arguments(self) -> Mapping[str, Any]:
        """The arguments as JSON shapes for a person or a record: the canonical ones, secrets hidden."""
        ...

    @property
    def is_recorded(self) -> bool:
        """True if a sink has its events."""
        ...

    @property
    def notes(self) -> tuple[calls.DecisionNote, ...]:
        """The decisions of the decision hooks, in order."""
        ...

    @property
    def request(self) -> calls.ApprovalRequest | None:
        """The question to a person; None for a call that needed no approval so far."""
        ...

    @property
    def grant(self) -> calls.Grant | None:
        """By what it may run; None for a call that needed no approval so far."""
        ...

    @property
    def begun(self) -> bool:
        """True if its tool, or the host in its place, has begun: it is not executed a second time."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """The outcome with which it was closed or suspended; None before."""
        ...

    @property
    def value(self) -> Any:
        """The tool's result, once the call is executed."""
        ...

    @property
    def error(self) -> Exception | None:
        """The exception of the tool; None when it returned."""
        ...

    @property
    def is_executable(self) -> bool:
        """True if the pipeline can execute it: a declared input has no function, unless something wraps it."""
        ...

    @property
    def waits_for_post_hooks(self) -> bool:
        """True if `finish` has a post hook to await."""
        ...

    @property
    def ctx(self) -> RunContext[Any] | None:
        """The run as hooks and tool see it; None where neither does."""
        ...

    @property
    def digest(self) -> str:
        """The digest of tool and arguments, which a grant is bound to; under a key where some of them are secret."""
        ...

    def activate(self) -> AbstractContextManager[None]:
        """Return a context manager in which started activities are known to be the call's."""
        ...

    def request_about(self, id: str, reason: str, **more: Any) -> calls.ApprovalRequest:
        """Return a request of a gate about the call as it is now.

        Args:
            id: The id of the request.
            reason: Why a person is asked.
            more: Other fields of the request.
        """
        ...

    def suspend(self, request: calls.ApprovalRequest) -> Suspended:
        """Suspend the call by a request, and return that as its outcome."""
        ...

    def note_answer(self, answer: dict[str, Any]) -> None:
        """Emit what was answered to a request, as JSON shapes."""
        ...

    def hook_failure(self, kind: str, hook: object, raised: BaseException) -> Failed:
        """Return the outcome for what the host's code raised for a gate, which is shut then; logged once."""
        ...

    def add_note(self, note: calls.DecisionNote) -> None:
        """Add the decision of a gate, and emit it; used by gates of the call alone."""
        ...

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add facts that an approver is shown besides the arguments, by name; used by gates of the call alone."""
        ...

    def asked_origins(self, gate: str) -> Sequence[Mapping[str, str]]:
        """Return the `origins` of the `Ask` of a gate, by its name; empty where it has not asked."""
        ...

    def parse(self) -> BaseModel:
        """Return the input as it is now, as a new object."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the state for `Pipeline.recover`, as JSON shapes; the arguments are the real ones.

        Raises:
            ResultNotSerializable: The call is executed, and what its tool returned has no JSON form.
        """
        ...


class Executor(Protocol):
    """Wraps the execution of a tool, and nothing else: the seam for durable engines."""

    async def execute(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result of `run()`; run it again only when the tool is idempotent and nothing was yielded."""
        ...


# --- parts of its state

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_KEY = os.urandom(32)


@dataclass(frozen=True, slots=True)
class Approval:
    """The question to a person about a call, and the answer.

    Attributes:
        reasons: Why a person has to be asked.
        metadata: The facts that they see besides the arguments.
        origins: The values that they are asked about, by the name of the gate that asks.
        request: The last question to them; None for a call that needed no approval so far.
        waits_for: The gate that suspended the call by a request of its own; empty where approval is asked for.
        grant: Their answer, by which the call may run.
        digest: The digest of the arguments that were approved; None when no approval was needed.
    """

    reasons: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    origins: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=lambda: _NOTHING)
    request: calls.ApprovalRequest | None = None
    waits_for: str = ""
    grant: calls.Grant | None = None
    digest: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the question as JSON shapes; an answer is not in it."""
        return {
            "asks": list(self.reasons),
            "origins": {name: list(values) for name, values in self.origins.items()},
            "ask_metadata": {str(name): lenient(value) for name, value in self.metadata.items()},
            "waits_for": self.waits_for,
            "request": None if self.request is None else self.request.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: StoredFields) -> Approval:
        """Return the question that the JSON of a call has."""
        return cls(
            reasons=tuple(data["asks"]),
            metadata=dict(data["ask_metadata"]),
            origins={name: tuple(values) for name, values in data.get("origins", {}).items()},
            request=None if data.get("request") is None else calls.ApprovalRequest.from_dict(data["request"]),
            waits_for=data.get("waits_for", ""),
        )


@dataclass(frozen=True, slots=True)
class History:
    """The history of a call before it came to this run: in another process, or as an earlier copy.

    Attributes:
        runs: The ids of the runs that it came through; the first counted it when it came.
        trace: The state that sinks of the process that suspended the call left for those here; None for a new call.
        revealed: Whether its tool was found in one of these runs.
        hooks_lost: Whether it had decision hooks of its own in the process that wrote it as JSON, where they do not go.
        doubts: How often it was found begun and not known to have ended.
        original: The call that this is a later copy of: of all copies one is executed.
        mismatch: Why a call that was begun cannot be done any more: the tool has changed since, and does not take its
            arguments now.
        key: Names the call in its JSON and in all that is restored from that; empty for one that was never written.
        digest_key: The key of its digest, where it has secret arguments: that of the run's approval store, so that all
            processes with the store have the same; else one of this process, which goes along in the call's JSON.
    """

    runs: tuple[str, ...] = ()
    trace: Mapping[str, str] | None = None
    revealed: bool = False
    hooks_lost: bool = False
    doubts: int = 0
    original: Any = None
    mismatch: InvalidArguments | SchemaError | None = None
    key: str = ""
    digest_key: bytes = field(default=_KEY, repr=False)

    @classmethod
    def from_dict(cls, data: StoredFields) -> History:
        """Return the history that the JSON of a call has."""
        return cls(
            runs=tuple(data.get("runs", ())),
            trace=data.get("trace", {}),
            revealed=data.get("revealed", False),
            hooks_lost=data.get("extra_hooks", False),
            doubts=data.get("doubts", 0),
            key=data.get("key", ""),
            digest_key=bytes.fromhex(data.get("digest_key", "")),
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """The progress of the execution of a call.

    Attributes:
        seal: The digest of the arguments that the gates saw last; None where no other code could change them.
        entered: Whether the tool's function was called by code around it.
        gave_value: Whether the function has yielded a value.
        consumer_error: The exception with which the consumer of its values left, before it asked for the next one.
        noted: How much of it the run's approval store knows; None for nothing.
        reports: The delivery of what the tool reported last; None where nothing is on its way.
        delivered: Whether the result, or each value of a stream, passed the deliveries.
        kept_result: The text in place of the result, where a result store keeps it.
    """

    seal: str | None = None
    entered: bool = False
    gave_value: bool = False
    consumer_error: BaseException | None = None
    noted: Literal["begun", "ended"] | None = None
    reports: Future[None] | None = None
    delivered: bool = False
    kept_result: KeptResult | None = None


NOT_ASKED = Approval()
NO_HISTORY = History()
NOT_BEGUN = Execution()
