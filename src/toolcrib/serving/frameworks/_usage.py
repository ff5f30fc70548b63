"""Usage of an agent of another framework: what its requests to a model took, on the record of the run of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from toolcrib.pipeline import Run
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
        read, written, cached, cache_written, reasoning = [_total(usage, name) for name in names]
        return CountedRequest(id, read, written, cached, model, cache_written, reasoning)


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """One request of an agent to its model, as the framework counts it.

    Attributes:
        id: Names it among the requests of its run, in every process.
        input_tokens: The tokens that the model read, those of a cache included; None where the framework counts none.
        output_tokens: The tokens that it wrote, its thoughts included.
        cached_tokens: How many of the input came from a cache.
        cache_written_tokens: How many of the input were written into one.
        reasoning_tokens: How much of the output were thoughts.
        model: The name of the model that answered.
    """

    id: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    model: str | None = None
    cache_written_tokens: int | None = None
    reasoning_tokens: int | None = None


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
        counts = (
            request.input_tokens,
            request.output_tokens,
            request.cached_tokens,
            request.cache_written_tokens,
            request.reasoning_tokens,
        )
        usage = Usage(1, *(count or 0 for count in counts), cost=None)
        trace = trace_activity(
            "chat",
            request.model or "model",
            run.view(parent_id=run.id),
            sinks,
            activity_id=f"chat_{sha256(f'{run.id} {request.id}'.encode()).hexdigest()[:32]}",
            about=lambda request=request: {"model": request.model or "", "principal": run.principal, "has_span": True},
        )
        if trace is not None:
            trace.closed("completed", usage=usage.to_dict(), model=request.model or "", duration_ms=None)


def _total(usage: object, names: str) -> int | None:
    """Return the sum of what these names say; None where none of them is known."""
    counts = [count for name in names.split() if isinstance(count := _count(usage, name), int)]
    return sum(counts) if counts else None


def _count(usage: object, name: str) -> object:
    value: Any = usage
    for part in name.split("."):
        fields: Any = value
        value = fields.get(part) if isinstance(value, Mapping) else getattr(fields, part, None)
    return value
