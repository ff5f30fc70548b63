"""The patches of `make mutants`, which are made of the source's own text, still apply."""

from pathlib import Path

import pytest

import toolcrib.errors
from tests.mutants.gates import GATES, Gate
from tests.mutants.run import is_in, named

PACKAGE = Path(toolcrib.errors.__file__).parents[1]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_the_text_that_a_gate_is_removed_by_is_there_once_and_python_is_left(gate: Gate) -> None:
    text = (PACKAGE / gate.file).read_text("utf-8")

    assert text.count(gate.was) == 1
    compile(text.replace(gate.was, gate.becomes), gate.file, "exec")


def test_gates_have_names_of_their_own() -> None:
    names = [gate.name for gate in GATES]

    assert len(names) == len(set(names))


def test_gates_are_chosen_by_name_by_a_word_of_it_and_by_place() -> None:
    words = [gate.name for gate in named(["in Monty"])]

    assert [gate.name for gate in named(["lock"])] == ["lock"]  # and not all that have the word in them
    assert len(words) > 1
    assert all("in Monty" in word for word in words)
    places = ("pipeline", "src/toolcrib/pipeline/_run.py", "code")
    assert [is_in(GATES[0], [place]) for place in places] == [True, True, False]
