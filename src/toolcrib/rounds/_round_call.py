"""RoundCall: a call as the provider sent it, with the pipeline's call that is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from toolcrib.approvals import digest
from toolcrib.calls import (
    CallMetadata,
    Completed,
    Denial,
    Failed,
    Grant,
    Outcome,
    Rejected,
    Suspended,
    ToolCall,
    copied,
)
from toolcrib.errors import SchemaError
from toolcrib.formats import ProviderFormat, WireCall, WireReply, own_arguments, text_parameter, without_filler
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Call, Pipeline, Run, is_call
from toolcrib.toolsets import Toolset

__all__ = ["Group", "RoundCall", "as_defined", "calls_of_tools", "tool_kind"]

Group: TypeAlias = Literal["pending", "handled", "rejected", "suspended", "issue"]
"""The part of a plan that a call is in."""


class RoundCall:
    """One call of a reply. The pipeline moves it; this class holds what the pipeline made of it.

    Attributes:
        wire: The call as the provider sent it.
        id: The id that its result has to name.
        name: The tool's name.
        call: The pipeline's call; None when the arguments cannot be read.
        outcome: What a gate ended the call with, or an observer's failure; None while it may go on.
        unread: A call whose arguments cannot be read, until the pipeline has counted and recorded it.
    """

    __slots__ = ("_input", "_made_of", "call", "id", "name", "outcome", "pipeline", "run", "unread", "wire")

    def __init__(
        self, wire: WireCall, pipeline: Pipeline, run: Run, call: Call | None = None, outcome: Outcome | None = None
    ) -> None:
        self.wire, self.pipeline, self.run = wire, pipeline, run
        self.id, self.name = wire.id, wire.name
        self.call, self.outcome = call, outcome
        self.unread: ToolCall | None = None
        self._input: Any = None
        self._made_of: object = None

    @classmethod
    def received(
        cls, wire: WireCall, reply: WireReply, pipeline: Pipeline, run: Run, *, format: ProviderFormat, strict: bool
    ) -> RoundCall:
        """Return a call that came in a reply, read; no gate is asked.

        Args:
            wire: The call.
            reply: What it came in.
            pipeline: The pipeline that takes it.
            run: The run that it belongs to.
            format: What the tool was defined in.
            strict: Whether the tool was defined in the provider's strict mode.
        """
        made = cls(wire, pipeline, run)
        arguments = as_defined(pipeline.toolset, wire, format, strict)
        received = ToolCall(wire.name, arguments, wire.id, fault=reply.fault_of(wire), caller=wire.caller)
        made._take(pipeline.receive(received, run))
        if made.call is None:
            made.unread = received
        return made

    @property
    def metadata(self) -> CallMetadata:
        """The call as it came."""
        return CallMetadata(self.wire.id, self.wire.name, self.wire.arguments)

    @property
    def group(self) -> Group:
        """The part of a plan that the call is in."""
        match self.outcome:
            case None:
                return "pending"
            case Completed():
                return "handled"
            case Rejected():
                return "rejected"
            case Suspended():
                return "suspended"
            case Failed():
                return "issue"

    @property
    def readable(self) -> Call:
        """The pipeline's call, where its arguments could be read."""
        if self.call is None:
            raise RuntimeError(f"the arguments of `{self.name}` could not be read")
        return self.call

    @property
    def asked(self) -> bool:
        """Whether its gates were asked."""
        return self.unread is None and (self.call is None or self.call.state != "received")

    @property
    def is_executable(self) -> bool:
        """Whether the pipeline can execute it now: a declared input has no function, unless something wraps it."""
        return not self.begun and self.readable.is_executable

    @property
    def begun(self) -> bool:
        """Whether its tool was started; it is never started twice."""
        return self.call is not None and self.call.begun

    # --- the input that the host sees, and may edit

    @property
    def input(self) -> Any:
        """The input as hooks left it: a copy for the host, so that an edit is noticed and the gates are asked."""
        call = self.readable
        source = call.raw_arguments
        if self._made_of is not source:
            spec = call.tool.spec
            self._input = spec.validate_model(source if isinstance(source, str | bytes) else _own(source))
            self._made_of = source
        return self._input

    @input.setter
    def input(self, value: Any) -> None:
        call = self.readable
        kind = call.tool.spec.input_model
        if not isinstance(value, kind):
            raise TypeError(f"the input of `{self.name}` is a {kind.__name__}, and this is a {type(value).__name__}")
        self._input = value
        self._made_of = call.raw_arguments

    def edited(self) -> dict[str, Any] | None:
        """Return the arguments that the host made of the input; None when no gate has to be asked about it."""
        if self._made_of is None or self.outcome is not None or self.begun:  # None: the input was never looked at
            return None
        call = self.readable
        if self._made_of is not call.raw_arguments:
            return None
        arguments = call.tool.spec.arguments(self._input)
        return None if _equal(call.name, arguments, call.arguments) else _own(arguments)

    # --- the steps

    def ask_now(self) -> bool:
        """Do what `ask` does where nothing is asked about the call; return whether that is so."""
        if self.outcome is not None and self.unread is None:
            return True
        call = self.call
        if call is None or self._made_of is not None:
            return False
        return call.state not in ("received", "suspended") or self.pipeline.admit_now(call)

    async def ask(self, hooks: HookSet | None = None) -> None:
        """Ask the call's gates: all of them about a new call or edited input, else these hooks alone.

        Raises:
            InvalidArguments: The host edited the input to what does not fit; the call is as it was.
        """
        if self.unread is not None:
            received, self.unread = self.unread, None
            self._take(await self.pipeline.admit(received, self.run, hooks=hooks))
            return
        if self.outcome is not None or self.begun:
            return
        edited = self.edited()
        if edited is not None or hooks is not None or not self.asked:
            self._take(await self.pipeline.admit(self.readable, hooks=hooks, arguments=edited))

    async def resolve(self, answer: Grant | Denial | None) -> None:
        """Take up a suspended call with a person's answer; with None the run's store and approver are asked."""
        if isinstance(self.outcome, Suspended):
            self._take(await self.pipeline.recover(self.outcome, self.run, grant=answer))

    def provide(self, values: Mapping[str, Any]) -> None:
        """Add what the caller supplies for injected parameters of this call."""
        self.pipeline.provide(self.readable, values)

    async def execute(self) -> None:
        """Run the call's tool, once; the gates are asked first where the input was edited.

        Raises:
            InvalidArguments: The host edited the input to what does not fit; the call is as it was.
            Exception: What an observer raised.
        """
        if not self.ask_now():
            await self.ask()
        if self.outcome is not None or self.begun:
            return
        call = self.readable
        try:
            made = await self.pipeline.execute(call)
        except Exception:  # an observer's, which has ended the call
            self.outcome = call.outcome
            raise
        if is_call(made) and made.error is None:
            self.pipeline.executed(made, copied(made.value))
        self._take(made)

    async def finish(self, output: Any, error: Exception | None) -> Outcome:
        """Run the post hooks on what the tool or the host's code returned, once, and close the record."""
        return await self.pipeline.finish(self._executed(output, error))

    def finish_now(self, output: Any, error: Exception | None) -> Outcome | None:
        """Do what `finish` does where there is no post hook to await; else return None."""
        return self.pipeline.finish_now(self._executed(output, error))

    def _executed(self, output: Any, error: Exception | None) -> Call:
        call = self.readable
        return call if call.state == "closed" else self.pipeline.executed(call, output, error)

    def answer(self, outcome: Outcome) -> Outcome:
        """Close the call with the host's outcome in the place of the tool's."""
        return self.pipeline.answer(self.readable, outcome)

    def discard(self) -> None:
        """Close the record of a call that will not be answered."""
        if self.call is not None:
            self.pipeline.discard(self.call)

    def _take(self, made: Call | Outcome) -> None:
        if is_call(made):
            self.call, self.outcome = made, None
        else:
            self.outcome = made


def calls_of_tools(reply: WireReply, format: ProviderFormat, toolset: Toolset) -> list[WireCall]:
    """Return the calls in a reply that are of tools, each of the kind that its tool takes."""
    kinds = [(call, tool_kind(toolset, format, call.kind, call.name, call.namespace)) for call in reply.calls]
    return [call if call.kind == kind else replace(call, kind=kind) for call, kind in kinds if kind]


def tool_kind(toolset: Toolset, format: ProviderFormat, kind: str, name: str, namespace: str) -> str:
    """Return the kind of a call as its tool takes it: `function`, or that of a free text for a tool that takes one.

    It is empty where the call is the host's to answer. One in a namespace is, unless that has the name of a tool that
    is offered deferred: the provider puts each of those into a namespace of its own.
    """
    if kind == "function":
        return kind
    entry = toolset.entries.get(name)
    if entry is None or (namespace and not (namespace == name and entry.provider.defer_loading)):
        return ""
    if kind not in format.free_texts:
        return "function" if namespace else ""
    try:
        return kind if text_parameter(entry.tool.parameters) is not None else ""
    except SchemaError:
        return ""


def as_defined(toolset: Toolset, call: WireCall, format: ProviderFormat, strict: bool) -> str | Mapping[str, Any]:
    """Return a call's arguments as the tool has them, and not as the provider's definition of it does.

    A free text becomes the tool's one argument; names that were sent in the place of others become those again; and
    in strict mode the nulls go that a model writes for what it leaves out.
    """
    raw, entry = call.arguments, toolset.entries.get(call.name)
    if entry is None:
        return raw
    try:
        parameters = entry.tool.parameters
        text = text_parameter(parameters) if isinstance(raw, str) and call.kind != "function" else None
        if text is not None:
            return {text: raw}
        names = format.sent_names(parameters)
        if not names and not (strict and (not isinstance(raw, str) or "null" in raw)):
            return raw
        value: object = json.loads(raw) if isinstance(raw, str) else raw
        if not isinstance(value, Mapping):
            return raw
        made = own_arguments(cast("Mapping[str, Any]", value), names)
        kept = without_filler(made, parameters) if strict else made
    except (ValueError, RecursionError, SchemaError):  # the pipeline says what is wrong with the call
        return raw
    return json.dumps(kept) if isinstance(raw, str) else kept


def _own(value: Any) -> Any:
    """Return a copy that shares nothing with the call; a user's type may refuse to be copied."""
    if not isinstance(value, Mapping):
        return value
    source: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType] -- checked just above
    try:
        return deepcopy(source)
    except Exception:  # a user's __deepcopy__
        return dict(source)


def _equal(tool: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return one == other or digest(tool, one) == digest(tool, other)
    except Exception:  # a user's __eq__; what cannot be compared is taken to be edited
        return False
