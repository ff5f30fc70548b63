"""Gates of a user, refused where they are made when they are none."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from toolcrib.calls import Completed, Reject, Rejected, ToolCall
from toolcrib.hooks import Gate, gate_steps
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


@ez_tool
async def send(text: str = "") -> str:
    """Send a text."""
    return text


class Closed:
    stage = "authorize"

    def check(self, call: Any) -> Reject:
        return Reject("closed")


class ClosedOnce:
    def __init__(self) -> None:
        self.stage = "authorize"

    def check(self, call: Any) -> Reject:
        return Reject("closed")


class AtNight:
    stage = "night"

    def check(self, call: Any) -> None: ...


class OnMondays:
    stage = "authorize"
    occasions = frozenset({"new", "monday"})

    def check(self, call: Any) -> None: ...


class OfTwo:
    stage = "authorize"

    def check(self, call: Any, run: Any) -> None: ...


class WithoutStage:
    def check(self, call: Any) -> None: ...


def of_two(call: Any, run: Any) -> None: ...


def toolset_of(gates: Any) -> object:
    return Toolset([send]).with_gates(*gates)


def run_of(gates: Any) -> object:
    return Run(gates=gates)


NOT_GATES: list[tuple[Any, type[Exception], str]] = [
    ([Closed], TypeError, r"the gate Closed is a class; give an object of it, as in gates=\[Closed\(\)\]"),
    ([ClosedOnce], TypeError, r"is not a gate; give an object with `stage` and `check\(call\)`"),
    ([WithoutStage()], TypeError, r"is not a gate; give an object with `stage` and `check\(call\)`"),
    (["closed"], TypeError, "'closed' is not a gate"),
    ([OfTwo()], TypeError, "call"),
    ([of_two], TypeError, "call"),
    ([AtNight()], ValueError, "the gate AtNight has the stage 'night'; it is one of resolve, validate, decide"),
    ([OnMondays()], ValueError, "the gate OnMondays has the occasion 'monday'; it is one of new, recovered"),
]


@pytest.mark.parametrize("made", [toolset_of, run_of])
@pytest.mark.parametrize(("gates", "error", "text"), NOT_GATES)
def test_what_is_not_a_gate_is_refused_where_it_is_given(
    made: Callable[[Any], object], gates: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        made(gates)


@pytest.mark.parametrize("gates", [Closed(), lambda call: None])
def test_the_gates_of_a_run_are_a_list(gates: Any) -> None:
    with pytest.raises(TypeError, match=r"Run: gates must be a list of them, as in gates=\[(Closed|<lambda>)\]"):
        Run(gates=gates)


def test_an_object_with_a_stage_and_a_check_is_a_gate() -> None:
    assert isinstance(Closed(), Gate)
    assert not isinstance(WithoutStage(), Gate)


@dataclass
class Named:
    name: str
    stage: str = "approve"

    def check(self, call: Any) -> None: ...


def test_a_gate_is_known_by_its_name_and_a_function_is_asked_at_authorize() -> None:
    [named, closed, function] = gate_steps("Run", [Named("office hours"), Closed(), lambda call: None])

    assert (named.name, closed.name, function.name) == ("office hours", "Closed", "<lambda>")
    assert (named.stage, closed.stage, function.stage) == ("approve", "authorize", "authorize")


@dataclass
class Equal:
    """A callable object that is compared by its fields, and so has no hash."""

    answer: Any

    def __call__(self, call: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("of_run", [False, True])
async def test_a_callable_object_without_a_hash_is_a_gate(of_run: bool) -> None:
    gates = [Equal(None), Equal(Reject("no"))]
    tools = Toolset([send]) if of_run else Toolset([send]).with_gates(*gates)

    outcome = await Pipeline(tools).run(ToolCall("send"), Run(gates=tuple(gates)) if of_run else None)

    assert isinstance(outcome, Rejected)


@dataclass
class Counting:
    seen: list[int]

    def __hash__(self) -> int:
        return 1

    def __call__(self, call: Any) -> None:
        self.seen.append(1)


async def test_two_gates_that_are_equal_are_both_asked() -> None:
    seen: list[int] = []
    gates = [Counting(seen), Counting(seen)]

    outcome = await Pipeline(Toolset([send]).with_gates(*gates)).run(ToolCall("send"))

    assert isinstance(outcome, Completed)
    assert len(seen) == 2
