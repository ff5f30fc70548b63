"""What a run of a conversation leaves behind, and the reference: the calls made directly in Python."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import ismethod
from typing import Any

from benchmarks.bfcl._calls import Call
from benchmarks.bfcl._data import Conversation, build_apis
from benchmarks.bfcl._snapshots import snapshot

__all__ = ["Answer", "Raised", "Replay", "Returned", "function_named", "run_directly", "states_of"]


@dataclass(frozen=True, slots=True)
class Returned:
    """A call's result, as a snapshot taken when it returned."""

    value: Any

    def __str__(self) -> str:
        return f"returned {self.value!r}"


@dataclass(frozen=True, slots=True)
class Raised:
    """A call's exception: its class name and its text."""

    error: str
    message: str

    def __str__(self) -> str:
        return f"raised {self.error}: {self.message}"


Answer = Returned | Raised


@dataclass(frozen=True, slots=True)
class Replay:
    """The answers of one run, turn by turn and call by call, and the end state of each object by class name."""

    answers: tuple[tuple[Answer, ...], ...]
    states: Mapping[str, Any]


def run_directly(conversation: Conversation, *, as_published: bool = False) -> Replay:
    """Return what the conversation's calls do when they are made in plain Python."""
    apis = build_apis(conversation, as_published=as_published)
    answers = tuple(
        tuple(_answer(call, function_named(call.name, apis)) for call in turn) for turn in conversation.turns
    )
    return Replay(answers, states_of(apis))


def function_named(name: str, apis: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the method of that name.

    Raises:
        LookupError: None of the objects has it, or more than one.
    """
    found = [method for api in apis.values() if ismethod(method := getattr(api, name, None))]
    if len(found) != 1:
        raise LookupError(f"{len(found)} of {', '.join(apis)} have a method `{name}`; it must be one")
    return found[0]


def states_of(apis: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot of each object by class name."""
    return {name: snapshot(api) for name, api in apis.items()}


def _answer(call: Call, fn: Callable[..., Any]) -> Answer:
    args, kwargs = copy.deepcopy((call.args, dict(call.kwargs)))  # the classes keep and change the lists they are given
    try:
        return Returned(snapshot(fn(*args, **kwargs)))
    except Exception as error:  # the benchmark's classes run here, and what they raise is an answer too
        return Raised(type(error).__name__, str(error))
