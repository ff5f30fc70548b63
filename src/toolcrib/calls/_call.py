"""A call: what is asked of a tool, by whom, with what."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Never, ParamSpec, TypeAlias, TypeVar, cast
from uuid import uuid4

from toolcrib._cut import cut
from toolcrib.calls._value_class import value_class
from toolcrib.errors import refuse_unknown_options

_SHOWN = 300  # characters of the arguments of a call that did not come whole

_P = ParamSpec("_P")
_T = TypeVar("_T")

RawArguments: TypeAlias = str | bytes | Mapping[str, Any]
"""Arguments as they come: JSON as text or bytes, or an object that was read from it."""

calling_line: ContextVar[int] = ContextVar("toolcrib_calling_line", default=0)
"""The line of a program on which the next call is made; 0 where it is not known."""

charge_time: ContextVar[Callable[[float], None] | None] = ContextVar("toolcrib_charge_time", default=None)
"""Takes the seconds that the host computes to read a call of a program, as time of that program; None elsewhere."""


def charged(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run `work` and return its result; a program for which the host runs it is charged its processor time."""
    charge = charge_time.get()
    if charge is None:
        return work(*args, **kwargs)
    began = time.thread_time()
    try:
        return work(*args, **kwargs)
    finally:
        charge(time.thread_time() - began)


def fault_text(fault: str, arguments: RawArguments, *, quoted: bool = True) -> str:
    """Return the text for a model about a call that arrived incomplete.

    Args:
        fault: The fault, as of `ToolCall.fault`.
        arguments: The part of its arguments that arrived.
        quoted: Whether they are in the text; not where one of them is secret.
    """
    arrived = ""
    if quoted:
        sent = json.dumps(arguments, default=str) if isinstance(arguments, Mapping) else arguments
        text = sent.decode("utf-8", "replace") if isinstance(sent, bytes) else sent
        arrived = f", and of its arguments came {'nothing' if text in ('', 'null') else f'`{cut(text, _SHOWN)}`'}"
    return f"{fault}{arrived}. Nothing ran; if it is still wanted, make the call again, whole"


_ARGUMENTS: Final = (str, dict, bytes, Mapping)
_ORIGINS: Final = ("model", "host")


def _not_a_call(call: ToolCall) -> TypeError:
    """Return the error for a call whose fields are of other types, as where two are in each other's place."""
    name, arguments = cast("object", call.name), cast("object", call.arguments)
    if isinstance(name, str) and isinstance(arguments, _ARGUMENTS):
        field = "id" if call.origin in _ORIGINS else "origin"
        mend = "a text" if field == "id" else "'model' or 'host'"
        return TypeError(f"ToolCall: {field} is {getattr(call, field)!r:.80}; give {mend}")
    if isinstance(name, Mapping):
        mend = "the name comes first"
    elif isinstance(name, str):
        mend = "give the arguments by name, as a dict or as its JSON; {} for none"
    else:
        mend = f"give the name of the tool: {getattr(name, 'name', 'NAME')!r}"
    fault = f"arguments is {arguments!r:.80}" if isinstance(name, str) else f"name is {name!r:.80}"
    return TypeError(f'ToolCall: {fault}; {mend}, as in ToolCall("refund", {{"cents": 4200}})')


_ids = itertools.count(1)
_prefix = f"call_{uuid4().hex[:12]}"


def _renew_prefix() -> None:
    global _prefix
    _prefix = f"call_{uuid4().hex[:12]}"


if hasattr(os, "register_at_fork"):  # a forked child must not hand out its parent's ids
    os.register_at_fork(after_in_child=_renew_prefix)


def new_call_id() -> str:
    """Return an id that no other call of this process has, and practically no other process's call."""
    return f"{_prefix}{next(_ids)}"


_NEW_ID: Final = "a new one"  # known by its identity
_NO_NAME: Final = cast("str", None)  # Python's own error about a missing name would come before that of an option
_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("args", "input", "kwargs", "parameters", "params", "tool_args", "tool_input"), "arguments"),
    **dict.fromkeys(("function", "tool", "tool_name"), "name"),
    **dict.fromkeys(("call_id", "tool_call_id"), "id"),
}


@value_class
class ToolCall:
    """A request to run a tool.

    Attributes:
        name: The tool's name in the toolset that is asked.
        arguments: Raw JSON text, or values by parameter name. No `repr` has them: what is secret is the tool's to say.
        id: Names this call in its run; approvals and records are bound to it. By default one of `new_call_id`.
        origin: Who made the arguments. A `model`'s are validated and may name nothing that is not offered; a `host`'s
            are Python values that pass as they are, and extra ones are ignored.
        caller: Its maker, as far as a provider says so: `direct` for the model itself, or the provider's word for a
            program of the model's. A call with a caller that its tool does not allow is refused.
        fault: Why it runs with no arguments at all: it did not come whole. Empty for nearly all; `fault_text` makes the
            sentence for a model.
        is_repaired: Whether its arguments came as what is nearly JSON; for the record.
    """

    name: str
    arguments: RawArguments = field(default="{}", repr=False)
    id: str = _NEW_ID
    origin: Literal["model", "host"] = "model"
    fault: str = ""
    caller: str = ""
    is_repaired: bool = False

    def __init__(  # by hand: checked by a wrapper around the dataclass's own, a call took twice as long to make
        self,
        name: str = _NO_NAME,
        arguments: RawArguments = "{}",
        id: str = _NEW_ID,
        origin: Literal["model", "host"] = "model",
        fault: str = "",
        caller: str = "",
        is_repaired: bool = False,
        **unknown: Never,
    ) -> None:
        if unknown:
            refuse_unknown_options("ToolCall", unknown, ToolCall.__annotations__, _WORDS)
        call: Any = self  # frozen for type checkers alone
        call.name = name
        call.arguments = arguments
        call.id = f"{_prefix}{next(_ids)}" if id is _NEW_ID else id  # `new_call_id`, at the cost of no call
        call.origin = origin
        call.fault = fault
        call.caller = caller
        call.is_repaired = is_repaired
        is_typed = isinstance(name, str) and isinstance(arguments, _ARGUMENTS) and isinstance(id, str)  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's values
        if not is_typed or origin not in _ORIGINS:
            raise _not_a_call(self)


@dataclass(frozen=True, slots=True)
class CallMetadata:
    """A call as decision hooks see it: its id, the tool's name, and the arguments as received."""

    id: str
    name: str
    arguments: RawArguments = field(repr=False)
