"""Activities of a session, for sinks: what it does from a question to its answer, and each request to the model."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from toolcrib.calls import ApprovalRequest
from toolcrib.formats import WireFormat
from toolcrib.pipeline import Run
from toolcrib.record import ActivityTrace, Sink, trace_activity, wants_activities
from toolcrib.rounds._round import ToolRound
from toolcrib.rounds._usage import Usage


class ModelRequest:
    """One request to the model, and its outcome.

    Attributes:
        usage: Its usage.
        round: The reply, or None.
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.answered_by = ""
        self.round: ToolRound | None = None

    def data(self) -> dict[str, Any]:
        """Return the data of the event that closes it."""
        data: dict[str, Any] = {"usage": self.usage.to_dict(), "model": self.answered_by}
        if self.round is not None:
            data |= {"stop": self.round.stop, "stop_kind": self.round.stop_kind}
        return data


class SessionActivity:
    """A session from a question to its answer: one activity of the kind `agent`, with requests and calls inside.

    It is opened by the step that needs it, and closed by the one that has the answer. Where no sink wants to know,
    no activity is opened.

    Attributes:
        run: The run that the calls belong to, as a part of the activity.
    """

    def __init__(self, model: object, format: WireFormat, run: Run) -> None:
        self._host_run = self.run = run
        self._trace: ActivityTrace | None = None
        self._is_executing = False
        self._sinks: tuple[Sink, ...] = ()
        self._before: Mapping[str, Any] = {}
        self._took = Usage()
        self._about = {
            "model": _text(model, "model"),
            "provider": _text(model, "provider") or format,
            **({"conversation_id": run.channel.conversation_id} if run.channel.conversation_id else {}),
        }
        self._is_instrumented = bool(getattr(model, "is_instrumented", False))

    def open(self, sinks: tuple[Sink, ...] | None = None, before: Mapping[str, Any] | None = None) -> None:
        """Emit that it begins, unless it goes on.

        Args:
            sinks: Those of the tools' pipeline; the same as before when None.
            before: The result of `pause`, perhaps in another process; that of this one when None.
        """
        if sinks is not None:
            self._sinks = sinks
        if self._trace is not None or not wants_activities(self._sinks, self._host_run.sinks):
            return
        known = self._before if before is None else before
        about = {**self._about, **({"resumed": known["trace"]} if known else {})}
        name, self._took = self._host_run.channel.agent or "session", Usage()
        self._trace = trace_activity(
            "agent", name, self._host_run, self._sinks, activity_id=known.get("id"), about=lambda: about
        )
        if self._trace is not None:
            self.run = self._host_run.view(parent_id=self._trace.id)

    @contextmanager
    def request(self, *, json: bool) -> Generator[ModelRequest]:
        """Emit that the model is asked in the body, and the outcome; what the body raises ends the activity."""
        model_request, trace = ModelRequest(), None
        if self._trace is not None:
            facts = {**self._about, "output": "json" if json else "text", "has_span": self._is_instrumented}
            name = self._about["model"] or "model"
            trace = trace_activity("chat", name, self.run, self._sinks, about=lambda: facts)
        try:
            with nullcontext() if trace is None else trace.within():
                yield model_request
        except BaseException as error:
            if trace is not None:
                trace.broken_off(error, **model_request.data())
            self.broken_off(error)
            raise
        finally:
            self._took += model_request.usage
        if trace is not None:
            trace.closed("completed", **model_request.data())

    @contextmanager
    def within(self) -> Generator[None]:
        """Execute the calls of a round in the body; what it raises ends the activity."""
        self.open()
        self._is_executing = True
        try:
            with nullcontext() if self._trace is None else self._trace.within():
                yield
        except BaseException as error:
            self.broken_off(error)
            raise
        finally:
            self._is_executing = False

    def suspend(self, calls: Iterable[ApprovalRequest]) -> None:
        """Emit that it waits for a person, who is asked about calls."""
        for request in calls:
            if self._trace is not None:
                self._trace.changed(
                    state="suspended", tool=request.tool, call_id=request.call_id, request_id=request.id
                )

    def close(self, outcome: str, error: str | None = None) -> None:
        """Emit how it ended: `completed` or `failed`."""
        if self._trace is not None:
            self._trace.closed(outcome, error, usage=self._took.to_dict())
        self._forget()

    def broken_off(self, error: BaseException) -> None:
        """Emit that an exception or a cancellation ended it."""
        if self._trace is not None:
            self._trace.broken_off(error, usage=self._took.to_dict())
        self._forget()

    def pause(self, *, is_over: bool = True) -> Mapping[str, Any]:
        """Emit that it may go on in another process, and return what is needed there to open it again.

        While calls are executed, or work is not over, nothing is emitted: it goes on here, and elsewhere only where
        this process dies.
        """
        if self._trace is None:
            return self._before
        before = {"id": self._trace.id, "trace": self._trace.carry()}
        if is_over and not self._is_executing:
            self.close("paused")
            self._before = before
        return before

    def _forget(self) -> None:
        self._trace, self.run, self._before = None, self._host_run, {}


def _text(model: object, name: str) -> str:
    value = getattr(model, name, "")
    return value if isinstance(value, str) else ""
