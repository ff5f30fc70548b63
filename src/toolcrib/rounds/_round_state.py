"""RoundState: a reply, its calls, and whether the round is over; a round and its plan share it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from toolcrib.calls import Failed, ToolCall
from toolcrib.errors import RoundError
from toolcrib.formats import ProviderFormat, WireCall, WireReply, json_shape
from toolcrib.hooks import ModelInput
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds._call import DecodedCall, readable_call
from toolcrib.rounds._recalled import read_provider_parts
from toolcrib.rounds._tool_calls import ToolCalls
from toolcrib.toolsets import Toolset, ToolsetLike

_ASKED_AGAIN = (
    "the round before this one still waits for an answer, and the model was asked again with the same messages. Leave "
    "the loop where `round.settled` is false, then answer (`await plan.resolve([request.grant(...)])`) and run that "
    "round again; or give `decode(..., run=Run(approver=...))`, or drop the round with `round.discard()`"
)


class RoundState:
    """The reply as received, its calls, and whether it was committed.

    Attributes:
        format: The rules of the wire format.
        reply: The reply.
        pipeline: The pipeline that takes the calls.
        run: The run that they belong to.
        strict: Whether the tools were defined in the provider's strict mode.
        calls: The calls of tools, in the assistant's order.
        others: The other parts of the reply that wait for an answer.
        ended: `committed` or `discarded`; empty while the round is open.
        dispatched: Whether the host's own code has begun to execute the calls.
    """

    __slots__ = (
        "calls",
        "dispatched",
        "ended",
        "format",
        "others",
        "pipeline",
        "reply",
        "run",
        "strict",
    )

    def __init__(
        self,
        format: ProviderFormat,
        reply: WireReply,
        pipeline: Pipeline,
        run: Run,
        *,
        strict: bool,
        calls: Sequence[DecodedCall[Any]] | None = None,
    ) -> None:
        self.format, self.reply, self.pipeline, self.run, self.strict = format, reply, pipeline, run, strict
        if calls is None:
            reader = ToolCalls(pipeline.toolset, format, strict=strict)
            calls = [received(call, reader, reply, pipeline, run) for call in reader.of(reply)]
        self.calls = tuple(calls)
        of_tools = {call.id for call in calls}
        if run.features:
            for call in calls:
                run.read_input(ModelInput("call", request=ToolCall(call.name, {}, call.id)))
            for item in reply.items:
                read_provider_parts(run, json_shape(item))
        self.others = tuple(call for call in reply.calls if call.id not in of_tools)
        self.ended = ""
        self.dispatched = False

    def require_open(self, error: type[RoundError] = RoundError) -> None:
        """Raise the error when the round is over."""
        if self.ended:
            raise error((f"the round was {self.ended} before",))

    def wait(self, messages: object) -> None:
        """Record that the round waits for an answer, and which messages the model was asked with."""
        if isinstance(messages, list):
            self._forget()
            asked = cast("list[Any]", messages)
            _waiting.append(_Waiting(asked, len(asked), self._call_ids))

    def require_none_waits(self, messages: object) -> None:
        """Discard the round, and raise RoundError, where one that answers the same messages still waits."""
        for other in tuple(_waiting):
            if other.messages is messages and len(other.messages) == other.number and other.call_ids != self._call_ids:
                self.discard()
                raise RoundError((_ASKED_AGAIN,))

    def end(self, how: str) -> None:
        """Record that the round is over: `committed` or `discarded`."""
        self.ended = how
        self._forget()

    @property
    def _call_ids(self) -> tuple[str, ...]:
        return tuple(call.id for call in self.calls)

    def _forget(self) -> None:
        """Forget that the round waits, also of one that was stored and is the same."""
        for other in tuple(_waiting):
            if other.call_ids == self._call_ids:
                _waiting.remove(other)

    def discard(self) -> None:
        """Drop the round."""
        self.require_open()
        self.end("discarded")
        for call in self.calls:
            live = readable_call(call)
            if live is not None:
                self.pipeline.discard(live)


class _Waiting(NamedTuple):
    """The state of a round that waits for an answer, also where its host let go of it."""

    messages: list[Any]
    number: int  # of the messages that the reply is to
    call_ids: tuple[str, ...]


_waiting: deque[_Waiting] = deque(maxlen=16)
"""The latest rounds that wait for an answer."""


def received(call: WireCall, reader: ToolCalls, reply: WireReply, pipeline: Pipeline, run: Run) -> DecodedCall[Any]:
    """Return a call of a tool in a reply, read; no gate is asked."""
    arguments, fault = reader.arguments_of(call), reply.fault_of(call)
    request = ToolCall(call.name, arguments, call.id, "model", fault, call.caller, call.is_repaired)
    read = pipeline.receive(request, run)
    if isinstance(read, Failed):
        return DecodedCall(call, pipeline, run, request, read)
    return DecodedCall(call, pipeline, run, read)


def pipeline_of(tools: Pipeline | ToolsetLike) -> Pipeline:
    """Return a pipeline of the tools: the same one for the same toolset, because a pipeline learns its tools once."""
    if isinstance(tools, Pipeline):
        return tools
    return _cached_pipeline(tools) if isinstance(tools, Toolset | type) else Pipeline(tools)


@lru_cache(maxsize=64)
def _cached_pipeline(tools: Toolset | type[Toolset]) -> Pipeline:
    return Pipeline(tools)
