"""Runs of agents of another framework: where their suspended calls are kept, and what requests to a model took."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from toolcrib.approvals import MemorySuspendedCalls, SuspendedCallStore, suspended_calls_beside
from toolcrib.calls import ApprovalRequest, Grant, Suspended, outcome_from_dict
from toolcrib.pipeline import CallLimits, Pipeline, Run, open_run, run_for
from toolcrib.record import Sink, trace_activity, wants_activities
from toolcrib.rounds import Usage


@dataclass(frozen=True, slots=True)
class UsageNames:
    """The framework's own names for what a request took: keys or attributes, with dots where one is inside another.

    Several names, separated by spaces, are added. An empty one is a count that the framework does not have.

    Attributes:
        input: The tokens that the model read, those of a cache included.
        output: The tokens that it wrote, its thoughts included.
        cached: How many of the input came from a cache.
        cache_written: How many of the input were written into one.
        reasoning: How much of the output were thoughts.
    """

    input: str
    output: str
    cached: str = ""
    cache_written: str = ""
    reasoning: str = ""

    def request(self, id: str, usage: object, model: str | None) -> CountedRequest:
        """Return a request with the counts of its usage, as the framework has it.

        Args:
            id: Names the request among those of its run, in every process.
            model: The name of the model that answered.
        """
        names = self.input, self.output, self.cached, self.cache_written, self.reasoning
        return CountedRequest(id, Usage(1, *(_total(usage, name) for name in names), cost=None), model)


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """One request of an agent to its model, as the framework counts it.

    Attributes:
        id: Names it among the requests of its run, in every process.
        usage: Its tokens; 0 for a count that the framework does not have.
        model: The name of the model that answered.
    """

    id: str
    usage: Usage
    model: str | None = None


def record_usage(run: Run, requests: Iterable[CountedRequest], sinks: tuple[Sink, ...] = ()) -> None:
    """Record the usage of requests, each once in a run, however often it is given.

    A sink receives each as an activity of the kind `chat` inside of the run. The framework's own instrumentation
    measures it, so that no span is made of it.

    Args:
        requests: The requests; they are not read where no sink wants activities.
    """
    if not wants_activities(sinks, run.sinks):
        return
    for request in requests:
        if not run.claim(f"usage of {request.id}"):
            continue
        trace = trace_activity(
            "chat",
            request.model or "model",
            run.view(parent_id=run.id),
            sinks,
            activity_id=f"chat_{sha256(f'{run.id} {request.id}'.encode()).hexdigest()[:32]}",
            about=lambda request=request: {"model": request.model or "", "principal": run.principal, "has_span": True},
        )
        if trace is not None:
            trace.closed("completed", usage=request.usage.to_dict(), model=request.model or "", duration_ms=None)


def _total(usage: object, names: str) -> int:
    """Return the sum of what these names say."""
    return sum(count for name in names.split() if isinstance(count := _count(usage, name), int))


def _count(usage: object, name: str) -> object:
    value: Any = usage
    for part in name.split("."):
        fields: Any = value
        value = fields.get(part) if isinstance(value, Mapping) else getattr(fields, part, None)
    return value


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST = 1_000
"""Values that are kept of each kind, such as runs and admitted calls."""

OpenFrameworkRun: TypeAlias = Callable[[Any], Run]
"""Opens the run that the calls of one run of an agent belong to, given the framework's own context."""


class RecentValues(OrderedDict[K, V]):
    """Values by their keys; of too many, the oldest are forgotten."""

    def keep(self, key: K, value: V) -> V | None:
        """Keep a value, and return the one that is forgotten for it, if any."""
        self[key] = value
        return self.popitem(last=False)[1] if len(self) > _MOST else None


class FrameworkRuns:
    """The runs of agents of one framework, each opened when its first call comes, and where suspended calls are kept.

    Args:
        entry: Which way the calls come, for the record.
        run: The run of all calls, or a function that opens one for each run of an agent; without it, the run of the
            tool that the agent runs in, or a new one for each run of an agent.
        suspended: Where suspended calls are kept; when None, beside the approval store of their run, or in memory.
        limits: The limits of each conversation; when None, those of the runs.
    """

    def __init__(
        self,
        entry: str,
        run: Run | OpenFrameworkRun | None,
        suspended: SuspendedCallStore | None,
        limits: CallLimits | None = None,
    ) -> None:
        self.entry = entry
        self.given, self._suspended = run, suspended
        self._memory = MemorySuspendedCalls()
        self._conversations = ConversationRuns(limits)
        self._opened: RecentValues[Hashable, tuple[Run, object]] = RecentValues()
        self._stores: RecentValues[int, tuple[object, SuspendedCallStore]] = RecentValues()
        self._given_answers: RecentValues[str, Grant] = RecentValues()
        self._pipeline: Pipeline | None = None

    def check_for(self, pipeline: Pipeline) -> None:
        """Check that the gates of the host's run are about tools of a pipeline; those of one that is opened, later.

        Raises:
            ToolConstraintError: A name is nearly that of a tool.
        """
        self._pipeline = pipeline
        if isinstance(self.given, Run):
            pipeline.check_run(self.given)

    def find(
        self,
        key: Hashable,
        context: Any,
        *,
        run_id: str = "",
        deps: Any = None,
        provide: Mapping[Any, Any] = MappingProxyType({}),
        conversation: Hashable = None,
        **defaults: Any,
    ) -> Run:
        """Return the run of the calls of one run of an agent.

        Args:
            key: An identity that only this run of the agent has.
            context: The framework's context, for the host's function; it is kept as long as the run.
            run_id: The id of a new run: the framework's own, where it has one.
            deps: The run's `deps` where the host's run has none.
            provide: More that the run provides for these calls.
            conversation: An identity that only its conversation has; its `conversation_id` when None.
            defaults: Other options, such as `conversation_id`, where the run has none.

        Raises:
            ToolConstraintError: A gate of the run that the host opens is about nearly a tool.
        """
        known = self._opened.get(key)
        if known is None:
            host_run = open_run(self.given, context)
            about = conversation or defaults.get("conversation_id") or key
            host_run = self._conversations.find(about, host_run, context)
            injected = {} if deps is None or (host_run is not None and host_run.deps is not None) else {"deps": deps}
            known = run_for(host_run, self.entry, run_id=run_id, **injected), context
            if self._pipeline is not None:
                self._pipeline.check_run(known[0])
            self._opened.keep(key, known)
        self._opened.move_to_end(key)
        run = known[0]
        lacking = {name for name in defaults if getattr(run if hasattr(run, name) else run.channel, name) is None}
        options = {name: value for name, value in defaults.items() if value and name in lacking}
        if provide:
            options["provide"] = {**run.provide, **provide}
        return run.view(**options) if options else run

    @property
    def may_ask(self) -> bool:
        """True if a run itself may ask for approval: by its features and gates, or by its `deps`."""
        host_run = self.given
        if isinstance(host_run, Run):
            return bool(host_run.features or host_run.gates) or host_run.has_asking_deps
        return host_run is not None

    def rejoin(self, run: Run, suspended: Suspended) -> None:
        """Count a run that goes on with a suspended call in the conversation that the call was made in."""
        if self._conversations.rejoin(run, suspended.request.run_id or ""):
            for key in [key for key, known in self._opened.items() if known[0].run is run.run]:
                del self._opened[key]

    def give(self, request: ApprovalRequest, grant: Grant) -> None:
        """Keep the answer to a request until the framework makes its call again."""
        self._given_answers.keep(request.id, grant)

    def answer_to(self, request: ApprovalRequest) -> Grant | None:
        """Return the answer that was given to a request in this process."""
        return self._given_answers.get(request.id)

    def store_of(self, run: Run) -> SuspendedCallStore:
        """Return where the suspended calls of a run are kept."""
        if self._suspended is not None or run.approvals is None:
            return self._suspended or self._memory
        known = self._stores.get(id(run.approvals))
        if known is None:
            known = run.approvals, suspended_calls_beside(run.approvals)
            self._stores.keep(id(run.approvals), known)
        return known[1]

    async def find_request(self, request_id: str, run: Run) -> tuple[str, Suspended] | None:
        """Return the suspended call that waits for a request, with the key that it is kept under."""
        stored = await self.store_of(run).find_request(run.principal or "", request_id)
        suspended = None if stored is None else outcome_from_dict(stored.state)
        return (stored.key, suspended) if stored is not None and isinstance(suspended, Suspended) else None


_MOST_CONVERSATIONS = 1_000
"""Conversations whose counts are kept; of more, those that had no run for the longest time are forgotten."""

_OF_THE_FIRST = ("gates", "deliveries", "features")
_OF_EACH = ("deps", "approver", "approvals", "principal", "provide", "sinks", "available", "channel", "durability")


class ConversationRuns:
    """The run of each conversation: its limits, and the standing grants that hold in it without an approval store.

    Args:
        limits: The limits of each conversation; None to have none, and to leave runs as they are.
    """

    def __init__(self, limits: CallLimits | None) -> None:
        self._limits = limits
        self._runs: OrderedDict[Hashable, tuple[Run, object]] = OrderedDict()

    def find(self, conversation: Hashable, host_run: Run | None, context: object) -> Run | None:
        """Return the run of the host as one that is counted with the others of its conversation.

        Args:
            conversation: An identity that only this conversation has, where the host's run names none (`Channel`).
            host_run: The host's run, whose gates, deliveries and features are those of the conversation's first run.
            context: The object that lives as long as the conversation, so that no other one gets its identity.

        Raises:
            TypeError: The host's run has limits, too.
        """
        if self._limits is None:
            return host_run
        if host_run is not None and host_run.limits is not None:
            raise TypeError("the limits are given twice: by GuardPolicy(limits=...), and by the run that it opens")
        if host_run is not None and host_run.channel.conversation_id is not None:
            conversation = host_run.channel.conversation_id
        options: dict[str, Any] = {} if host_run is None else {name: getattr(host_run, name) for name in _OF_EACH}
        known = self._runs.get(conversation)
        if known is None:
            first = {} if host_run is None else {name: getattr(host_run, name) for name in _OF_THE_FIRST}
            known = self._runs[conversation] = Run(limits=self._limits, **first, **options), context
        self._runs.move_to_end(conversation)
        if len(self._runs) > _MOST_CONVERSATIONS:
            self._runs.popitem(last=False)
        return known[0].view(**options)

    def rejoin(self, run: Run, run_id: str) -> bool:
        """Count a run in the conversation that the run of an id belongs to; return whether that is another one.

        A framework may not say by itself that what goes on is what stopped before: a call that was suspended does.
        """
        if run.run.id == run_id:
            return False
        earlier = next((known for known in self._runs.values() if known[0].id == run_id), None)
        if earlier is None:
            return False
        for conversation in [name for name, known in self._runs.items() if known[0] is run.run]:
            self._runs[conversation] = earlier[0], self._runs[conversation][1]
        return True
