"""OtelSink: calls as `execute_tool` spans, inside of the agents, turns and programs that make them; and metrics."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Token
from importlib.metadata import version
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter, get_meter_provider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    ProxyTracerProvider,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    get_tracer_provider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolcrib.calls import ActivityEvent, CallEvent
from toolcrib.errors import explain_options
from toolcrib.record import Followed, current_activity
from toolcrib.telemetry import _attributes as named
from toolcrib.telemetry._metrics import Measures

_SCOPE = "toolcrib"
_MOST_OPEN = 10_000  # spans that are never closed: of a round's calls that were admitted and never executed
_MOST_VALUES = 32  # values of a stream that are span events; all of them are counted
_FLUSH_MS = 5_000

_Key: TypeAlias = tuple[Followed, str, str]
K = TypeVar("K")
V = TypeVar("V")
_w3c = TraceContextTextMapPropagator()


@runtime_checkable
class _Keeps(Protocol):
    """A provider of the SDK, which may not have exported yet what it was given."""

    def force_flush(self, timeout_millis: int = _FLUSH_MS) -> bool: ...


@runtime_checkable
class _Readable(Protocol):
    """A span of the SDK, whose attributes can be read."""

    @property
    def attributes(self) -> Mapping[str, Any] | None: ...


@explain_options()
class OtelSink:
    """Makes OpenTelemetry spans and metrics of calls and runs, by the conventions for generative AI.

    Give it wherever sinks are taken. What is secret never gets here; arguments and results, which may be private, are
    left out of the spans unless they are asked for. A failing exporter fails no call.

    Args:
        tracer_provider: Where spans go; the process's own when None.
        meter_provider: Where measurements go; the process's own when None.
        arguments: Put the arguments of calls, and the text of programs, on the spans.
        results: Put the results of calls, and what errors say, on the spans.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        arguments: bool = False,
        results: bool = False,
    ) -> None:
        _require_provider("tracer_provider", tracer_provider, TracerProvider)
        _require_provider("meter_provider", meter_provider, MeterProvider)
        release = version(_SCOPE)
        self._tracer = get_tracer(_SCOPE, release, tracer_provider)
        self._measures = Measures(get_meter(_SCOPE, release, meter_provider))
        self._providers = tracer_provider, meter_provider
        self._arguments, self._results = arguments, results
        self._open: _Bounded[_Key, _OpenSpan] = _Bounded(_MOST_OPEN)
        self._inside: _Bounded[tuple[bool, str], _OpenSpan] = _Bounded(_MOST_OPEN)
        self._waiting: _Bounded[_Key, SpanContext] = _Bounded(_MOST_OPEN)

    @property
    def has_provider(self) -> bool:
        """True if spans are exported: a provider was given, or the process has one by now."""
        return not isinstance(self._providers[0] or get_tracer_provider(), ProxyTracerProvider)

    def flush(self) -> None:
        """Flush the providers, which export all that they keep; for a process that ends without the usual goodbye."""
        tracers, meters = self._providers
        for provider in (tracers or get_tracer_provider(), meters or get_meter_provider()):
            if isinstance(provider, _Keeps):
                provider.force_flush(_FLUSH_MS)

    # --- what sinks have

    def emit(self, event: CallEvent) -> None:
        """Export an event of a call; see `Sink`."""
        key: _Key = ("call", event.call_id, event.run_id)
        opened = self._open.get(key) or self._begin(key, event, named.of_call(event), event.data.get("resumed"))
        if event.kind == "ended":
            self._forget(key)
            self._measures.ended(event)
            self._end_call(opened, event)
        elif event.kind == "suspended":
            self._waiting.put(key, opened.span.get_span_context())
            self._measures.suspended(event)
            request = event.data["request"]
            opened.span.add_event("toolcrib.suspended", {"toolcrib.approval.request.id": str(request["id"])})
        elif opened.span.is_recording():
            self._note(opened, event)

    def emit_activity(self, event: ActivityEvent) -> None:
        """Export an event of an agent, a turn, a program, a session or a request; see `ActivitySink`."""
        if event.activity == "request":
            self._request(event)
            return
        key: _Key = (event.activity, event.activity_id, "")
        if event.kind == "opened":
            opened = self._begin(key, event, named.of_run(event), event.data.get("resumed"))
            if self._arguments and "source" in event.data:
                opened.span.set_attribute(named.SOURCE, named.text_of(event.data["source"]))
            return
        opened = self._open.get(key)
        if opened is None:
            return
        if event.kind == "changed":
            attributes = {f"toolcrib.{name}": str(event.data[name]) for name in ("state", "tool") if name in event.data}
            opened.span.add_event("toolcrib.changed", attributes)
            return
        self._forget(key)
        self._end_run(opened, event)

    def around(self, kind: Followed, activity_id: str, run_id: str) -> AbstractContextManager[object]:
        """Return a context manager that makes the span of a call or run the current one; see `TracingSink`."""
        opened = self._open.get(_key(kind, activity_id, run_id))
        return nullcontext() if opened is None else _Attached(opened)

    def carry(self, kind: Followed, activity_id: str, run_id: str) -> Mapping[str, str]:
        """Return the W3C trace context of a call or run, which the one that goes on in another process is linked to."""
        key = _key(kind, activity_id, run_id)
        opened = self._open.get(key)
        context = self._waiting.get(key) if opened is None else opened.span.get_span_context()
        return {} if context is None else _as_carrier(context)

    # --- spans

    def _begin(
        self, key: _Key, event: CallEvent | ActivityEvent, attributes: Mapping[str, Any], resumed: object
    ) -> _OpenSpan:
        parent = self._parent(event.parent_id, is_turns=key[0] == "call" and event.parent_id == key[1])
        theirs = _theirs(event, parent)
        if theirs is None:
            before = _from_carrier(resumed)
            record = event.record if isinstance(event, CallEvent) else None
            span = self._tracer.start_span(
                named.span_name(event),
                parent,
                SpanKind.CLIENT if key[0] == "chat" else SpanKind.INTERNAL,
                attributes,
                [] if before is None else [Link(before, {"toolcrib.link": "resumed"})],
                None if record is None else int(record.started_at.timestamp() * 1e9),  # its events come when it is over
            )
            opened = _OpenSpan(span, event.data)
        else:
            opened = _OpenSpan(theirs, event.data, is_ours=False)
            if key[0] == "call":
                theirs.set_attributes(attributes)
        self._inside.put((key[0] == "call", key[1]), opened)
        forgotten = self._open.put(key, opened)
        if forgotten is not None and forgotten.is_ours:
            forgotten.span.end()
        return opened

    def _parent(self, parent_id: str | None, *, is_turns: bool) -> Context | None:
        """Return the context that a span begins in: None for the current one, when that is as near or nearer."""
        if parent_id is None or current_activity() == parent_id:
            return None
        found = None if is_turns else self._inside.get((True, parent_id))
        found = found or self._inside.get((False, parent_id))
        return None if found is None else set_span_in_context(found.span)

    def _forget(self, key: _Key) -> None:
        self._open.pop(key)
        self._inside.pop((key[0] == "call", key[1]))

    def _note(self, opened: _OpenSpan, event: CallEvent) -> None:
        span = opened.span
        if event.kind in ("received", "started"):
            if self._arguments:
                span.set_attribute(named.ARGUMENTS, named.text_of(event.data["arguments"]))
            if event.kind == "started":
                span.add_event("toolcrib.started")
        elif event.kind == "decided":
            name, attributes = named.decision(event.data, reasons=self._arguments)
            span.add_event(name, attributes)
        elif event.kind in ("asked", "answered", "logged", "progressed"):
            opened.notes += 1
            if opened.notes <= _MOST_VALUES:
                span.add_event(f"toolcrib.{event.kind}", named.note(event.data, texts=self._arguments))
        elif event.kind == "yielded":
            opened.values += 1
            span.set_attribute("toolcrib.values", opened.values)
            if opened.values <= _MOST_VALUES:
                span.add_event("toolcrib.yielded", {"toolcrib.value.index": opened.values - 1})

    def _end_call(self, opened: _OpenSpan, event: CallEvent) -> None:
        span, outcome = opened.span, event.data["outcome"]
        failure = named.error_type(outcome)
        if span.is_recording():
            span.set_attribute(named.OUTCOME, str(outcome["kind"]))
            if outcome["kind"] == "rejected":
                span.set_attribute("toolcrib.outcome.source", str(outcome["source"]))
            if self._results and "value" in outcome:
                span.set_attribute(named.RESULT, named.text_of(outcome["value"]))
            if outcome.get("retryable"):
                span.add_event("toolcrib.retry", {named.ERROR_TYPE: failure or ""})
        if failure is not None:
            self._fail(span, failure, outcome.get("message"))
        if opened.is_ours:
            span.end()

    def _end_run(self, opened: _OpenSpan, event: ActivityEvent) -> None:
        if event.activity == "chat":
            self._measures.answered(event, opened.data)
        if not opened.is_ours:
            return
        span, outcome = opened.span, str(event.data["outcome"])
        span.set_attribute(named.OUTCOME, outcome)
        if event.activity in ("agent", "chat"):
            span.set_attributes(named.of_usage(event.data.get("usage", {})))
        if event.activity == "chat":
            span.set_attributes(named.of_answer(event.data))
        if outcome in ("error", "failed", "timeout", "refused"):
            self._fail(span, str(event.data.get("error_type") or outcome), event.data.get("error"))
        span.end()

    def _fail(self, span: Span, failure: str, message: object) -> None:
        span.set_attribute(named.ERROR_TYPE, failure)
        shown = named.text_of(message) if self._results and message else failure  # it may quote a value
        span.set_status(Status(StatusCode.ERROR, shown))

    def _request(self, event: ActivityEvent) -> None:
        """Add to the span of an MCP server's request, which the SDK makes, what it does not know."""
        if event.kind == "closed":
            self._measures.requested(event)
        elif event.kind == "opened":
            get_current_span().set_attributes(named.of_request(event.data))


def _key(kind: Followed, activity_id: str, run_id: str) -> _Key:
    return (kind, activity_id, run_id if kind == "call" else "")


def _theirs(event: CallEvent | ActivityEvent, parent: Context | None) -> Span | None:
    """Return the span that other instrumentation has of the same thing, so that it is not there twice.

    Of a call that a framework makes, it is the current span. Of a request to a model that has a span of its own, it
    is the one around it, in which the model's is made.
    """
    if isinstance(event, ActivityEvent):
        return get_current_span(parent) if event.activity == "chat" and event.data.get("has_span") else None
    span = get_current_span()
    attributes = (span.attributes or {}) if isinstance(span, _Readable) else {}
    is_it = attributes.get(named.OPERATION) == "execute_tool" and attributes.get("gen_ai.tool.call.id") == event.call_id
    return span if is_it and named.ENTRY not in attributes else None


class _OpenSpan:
    """A span that is open, and the context that what is inside of it runs in.

    Attributes:
        values: The number of values of a stream so far.
        notes: The number of events of questions and log lines of the tool so far.
        is_ours: Whether the span is the sink's own; one of other instrumentation is added to, and ended by that.
        data: The data of the event that it began with.
    """

    __slots__ = ("context", "data", "is_ours", "notes", "span", "values")

    def __init__(self, span: Span, data: Mapping[str, Any], *, is_ours: bool = True) -> None:
        self.span, self.data, self.is_ours = span, data, is_ours
        self.context = set_span_in_context(span)
        self.values = self.notes = 0


class _Attached:
    """Makes a span the current one; left, it leaves the context as it was."""

    __slots__ = ("_open", "_token")

    def __init__(self, opened: _OpenSpan) -> None:
        self._open = opened
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        self._token = otel_context.attach(self._open.context)

    def __exit__(self, *error: object) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        with suppress(ValueError):  # thrown away unfinished, and closed by the garbage collector in another context
            token.var.reset(token)  # `detach` would log an error where this passes over one


def _require_provider(option: str, provider: object, kind: type[TracerProvider] | type[MeterProvider]) -> None:
    if provider is not None and not isinstance(provider, kind):
        mend = f"give a {kind.__name__} of the SDK, to which its exporters are added"
        raise TypeError(f"OtelSink: {option} is {provider!r:.80}; {mend}")


class _Bounded(Generic[K, V]):
    """A dict for several threads, which forgets what was put first when there is too much."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._items: OrderedDict[K, V] = OrderedDict()

    def put(self, key: K, value: V) -> V | None:
        """Keep a value; return the one that is forgotten for it."""
        with self._lock:
            self._items[key] = value
            return self._items.popitem(last=False)[1] if len(self._items) > self._most else None

    def get(self, key: K) -> V | None:
        """Return a value, None without one."""
        return self._items.get(key)

    def pop(self, key: K) -> V | None:
        """Return a value and forget it."""
        with self._lock:
            return self._items.pop(key, None)


def _as_carrier(context: SpanContext) -> dict[str, str]:
    """Return where a span is to be found, as W3C trace context."""
    carrier: dict[str, str] = {}
    if context.is_valid:
        _w3c.inject(carrier, set_span_in_context(NonRecordingSpan(context)))
    return carrier


def _from_carrier(carrier: object) -> SpanContext | None:
    """Return the span that W3C trace context names; None when it names none."""
    if not isinstance(carrier, Mapping):
        return None
    found = get_current_span(_w3c.extract(cast("Mapping[str, str]", carrier), Context())).get_span_context()
    return found if found.is_valid else None
