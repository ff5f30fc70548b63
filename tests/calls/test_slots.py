"""Values that are made on every call: sooner than by their class, and the same."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from toolcrib.calls import Completed, ToolCall, completed, host_call

PAIRS: tuple[tuple[Any, Any], ...] = (
    (completed("double", "c1", [2], 10), Completed("double", "c1", [2], max_result_chars=10)),
    (host_call("double", {"number": 1}, "c1"), ToolCall("double", {"number": 1}, "c1", "host")),
)


@pytest.mark.parametrize(("sooner", "made"), PAIRS)
def test_it_is_what_the_class_makes(sooner: Any, made: Any) -> None:
    assert (type(sooner), sooner, repr(sooner)) == (type(made), made, repr(made))
    assert pickle.loads(pickle.dumps(sooner)) == made
    assert replace(sooner) == made


@pytest.mark.parametrize(("sooner", "made"), PAIRS)
def test_it_is_as_frozen(sooner: Any, made: Any) -> None:
    name = fields(made)[0].name

    with pytest.raises(FrozenInstanceError):
        setattr(sooner, name, "other")
