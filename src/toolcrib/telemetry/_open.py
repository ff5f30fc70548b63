"""Open spans, the context of what runs inside them, and the trace context of suspended calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Token
from typing import Any, Generic, TypeAlias, TypeVar, cast

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolcrib.record import Followed

Key: TypeAlias = tuple[Followed, str, str]
K = TypeVar("K")
V = TypeVar("V")
_w3c = TraceContextTextMapPropagator()


class OpenSpan:
    """A span that is open, and the context that what is inside of it runs in.

    Attributes:
        values: How many values of a stream have come.
        notes: How many events have come of what the tool asks and logs.
        is_ours: Whether the span is the sink's own; one of other instrumentation is added to, and ended by that.
        data: The data of the event that it began with.
    """

    __slots__ = ("context", "data", "is_ours", "notes", "span", "values")

    def __init__(self, span: Span, data: Mapping[str, Any], *, is_ours: bool = True) -> None:
        self.span, self.data, self.is_ours = span, data, is_ours
        self.context = set_span_in_context(span)
        self.values = self.notes = 0


class Attached:
    """Makes a span the current one; left, it leaves the context as it was."""

    __slots__ = ("_open", "_token")

    def __init__(self, opened: OpenSpan) -> None:
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


class Bounded(Generic[K, V]):
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


def as_carrier(context: SpanContext) -> dict[str, str]:
    """Return where a span is to be found, as W3C trace context."""
    carrier: dict[str, str] = {}
    if context.is_valid:
        _w3c.inject(carrier, set_span_in_context(NonRecordingSpan(context)))
    return carrier


def from_carrier(carrier: object) -> SpanContext | None:
    """Return the span that W3C trace context names; None when it names none."""
    if not isinstance(carrier, Mapping):
        return None
    found = get_current_span(_w3c.extract(cast("Mapping[str, str]", carrier), Context())).get_span_context()
    return found if found.is_valid else None
