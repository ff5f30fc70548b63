from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.code._program_tools import program_names
from toolcrib.errors import DuplicateNameError


def test_a_name_that_python_takes_stays() -> None:
    assert program_names(["get_weather", "orders__lines"]) == {
        "get_weather": "get_weather",
        "orders__lines": "orders__lines",
    }


@pytest.mark.parametrize(
    ("tool", "name"),
    [("get-weather", "get_weather"), ("a.b", "a_b"), ("3d", "_3d"), ("import", "import_"), ("open", "open_")],
)
def test_other_names_are_made_to_fit(tool: str, name: str) -> None:
    assert program_names([tool]) == {name: tool}


def test_two_tools_that_would_have_one_name_are_named() -> None:
    with pytest.raises(DuplicateNameError, match=r"`get-it` and `get_it`.*rename one"):
        program_names(["get-it", "get_it"])


@given(st.text(min_size=1))
def test_every_name_is_a_name(tool: str) -> None:
    (name,) = program_names([tool])

    assert name.isidentifier()
