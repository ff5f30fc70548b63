"""The patches of `make mutants`, which are made of the source's own text, still apply."""

from pathlib import Path

import pytest

import toolcrib.errors
from tests.mutants.gates import GATES, Gate

PACKAGE = Path(toolcrib.errors.__file__).parents[1]


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_the_text_that_a_gate_is_removed_by_is_there_once_and_python_is_left(gate: Gate) -> None:
    text = (PACKAGE / gate.file).read_text("utf-8")

    assert text.count(gate.was) == 1
    compile(text.replace(gate.was, gate.becomes), gate.file, "exec")


def test_gates_have_names_of_their_own() -> None:
    names = [gate.name for gate in GATES]

    assert len(names) == len(set(names))
