"""Names in a database that are made of arguments, and shown where arguments are not: they tell no secret."""

from typing import Any

import pytest
from pydantic import SecretStr

from toolcrib.approvals import digest
from toolcrib.durable import TurnExecution, arguments_in_names
from toolcrib.durable._turn_execution import step_name
from toolcrib.tools import ez_tool
from toolcrib.turns import Turn


@ez_tool
async def pay(pin: SecretStr, cents: int) -> None: ...


@ez_tool
async def greet(name: str) -> None: ...


def _turn(pin: str, cents: int = 5) -> Turn[Any]:
    return Turn(pay, kwargs={"pin": SecretStr(pin), "cents": cents})


def _child_id(turn: Turn[Any]) -> str:
    data = {"agent": "till", "turn": turn.to_dict()}
    named = arguments_in_names(turn, data["turn"]["kwargs"])
    return TurnExecution("work_1", None).add_child(data, named, {}, is_new=True)


def test_the_name_of_a_step_tells_no_secret() -> None:
    names = {step_name("admit", turn, turn.to_dict()) for turn in map(_turn, ("4711", "4712"))}
    other = _turn("4711", cents=6)

    assert len(names) == 1
    assert step_name("admit", other, other.to_dict()) not in names


def test_the_name_of_a_step_without_secrets_is_that_of_its_arguments() -> None:
    turn = Turn(greet, kwargs={"name": "ann"})

    assert step_name("admit", turn, turn.to_dict()) == f"admit greet {digest('greet', {'name': 'ann'})[:16]} 1"


@pytest.mark.parametrize("cents", [5, 6])
async def test_the_id_of_a_turn_that_another_puts_tells_no_secret(cents: int) -> None:
    ids = {_child_id(turn) for turn in (_turn("4711"), _turn("4712"), _turn("4711", cents))}

    assert len(ids) == (1 if cents == 5 else 2)


async def test_two_turns_that_differ_in_a_secret_alone_are_two() -> None:
    execution = TurnExecution("work_1", None)

    for turn in map(_turn, ("4711", "4712")):
        data = {"agent": "till", "turn": turn.to_dict()}
        execution.add_child(data, arguments_in_names(turn, data["turn"]["kwargs"]), {}, is_new=True)

    assert len({child["turn"]["uuid"] for child in execution.children}) == 2
