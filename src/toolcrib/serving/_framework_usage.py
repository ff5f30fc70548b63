"""Usage of an agent of another framework: what its requests to a model took, on the record of the run of its calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from toolcrib.pipeline import Run
from toolcrib.record import Sink, trace_activity, wants_activities
from toolcrib.rounds import Usage

__all__ = ["CountedRequest", "record_usage"]


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """One request of an agent to its model, as the framework counts it.

    Attributes:
        id: Names it among the requests of its run, in every process.
        input_tokens: What the model read, with what came from a cache; None where the framework does not say it.
        output_tokens: What it wrote, with its thoughts.
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
    """Record what requests took, each once in a run, however often it is given.

    A sink receives each as an activity of the kind `chat` inside of the run. The framework's own instrumentation
    measures it, so that no span is made of it.

    Args:
        requests: The requests; they are not read where no sink wants activities.
    """
    if not wants_activities(sinks, run.sinks):
        return
    for one in requests:
        if not run.claim(f"usage of {one.id}"):
            continue
        counts = one.input_tokens, one.output_tokens, one.cached_tokens, one.cache_written_tokens, one.reasoning_tokens
        usage = Usage(1, *(count or 0 for count in counts), cost=None)
        trace = trace_activity(
            "chat",
            one.model or "model",
            run.view(parent_id=run.id),
            sinks,
            activity_id=f"chat_{sha256(f'{run.id} {one.id}'.encode()).hexdigest()[:32]}",
            about=lambda one=one: {"model": one.model or "", "principal": run.principal, "has_span": True},
        )
        if trace is not None:
            trace.closed("completed", usage=usage.to_dict(), model=one.model or "", duration_ms=None)
