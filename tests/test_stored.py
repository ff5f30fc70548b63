"""Stored values with a field missing: `from_dict` of every class says which."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from toolcrib import Agent, Turn, ez_tool
from toolcrib.approvals import Execution, GrantForm
from toolcrib.calls import (
    ApprovalRequest,
    Bound,
    Completed,
    Delegation,
    Denial,
    Failed,
    Grant,
    GrantUse,
    Identity,
    KeptResult,
    Media,
    Rejected,
    RequiredApprovers,
    Suspended,
    outcome_from_dict,
)
from toolcrib.code import PausedProgram, ProgramSessionState, SavedProgram
from toolcrib.errors import FieldProblem
from toolcrib.rounds import Usage
from toolcrib.turns import ContextItem, ContextPool, ContextQueue

REQUEST = ApprovalRequest("ask_1", "call_1", "find", {}, "d")
ITEM = ContextItem("x", "about x", "x")
VALUES = [
    REQUEST,
    Grant("find"),
    Denial("find"),
    Completed("find", "call_1", 1),
    Rejected("find", "call_1", "no"),
    Failed("find", "call_1", "invalid_arguments", "no", problems=(FieldProblem("a", "missing"),)),
    Suspended("find", "call_1", REQUEST),
    PausedProgram("1", "cpython"),
    ITEM,
    ContextQueue(3),
    ContextPool(3),
]


@ez_tool
async def find(a: int = 1) -> int:
    """Find something."""
    return a


def read(value: Any) -> Callable[[Any], Any]:
    is_outcome = isinstance(value, Completed | Rejected | Failed | Suspended)
    return outcome_from_dict if is_outcome else type(value).from_dict


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_field_that_is_missing_is_named(value: Any) -> None:
    data, says = value.to_dict(), []

    for name in set(data) - {"kind"}:
        try:
            read(value)({key: part for key, part in data.items() if key != name})
        except ValueError as error:
            says.append(str(error) == f"this is not a valid {type(value).__name__}: the field `{name}` is missing")

    assert says
    assert all(says)


@pytest.mark.parametrize("name", ["tool_name", "uuid", "kwargs"])
def test_a_field_that_is_missing_in_a_turn_is_named(name: str) -> None:
    data = Turn(find).to_dict()
    del data[name]

    with pytest.raises(ValueError, match=f"this is not a valid Turn: the field `{name}` is missing"):
        Turn.from_dict(data, [find])


def test_a_field_that_is_missing_in_an_agent_is_named() -> None:
    data = Agent("finder", "Finds", [find]).to_dict()
    del data["description"]

    with pytest.raises(ValueError, match="this is not a valid Agent: the field `description` is missing"):
        Agent.from_dict(data, tools=[find])


READERS: Mapping[str, Callable[[Any], object]] = {
    **{
        cls.__name__: cls.from_dict
        for cls in (
            *(Agent, ApprovalRequest, Bound, ContextItem, ContextPool, ContextQueue, Delegation, Denial, Execution),
            *(Grant, GrantForm, GrantUse, Identity, KeptResult, Media, PausedProgram, ProgramSessionState),
            *(RequiredApprovers, SavedProgram, Turn, Usage),
        )
    },
    "Outcome": outcome_from_dict,
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_dict_is_named(name: str) -> None:
    article = "an" if name[0] in "AEIOU" else "a"

    for wrong in (None, [], 5):
        with pytest.raises(
            ValueError, match=f"{article} {name} is read from a dict, and this is {type(wrong).__name__}"
        ):
            READERS[name](wrong)
    with pytest.raises(ValueError, match=r"and this is str; give what `json\.loads\(text\)` returns"):
        READERS[name]("{}")
