import json
from types import MappingProxyType

import pytest

from toolcrib._json_writer import json_writer

SHAPES = [
    {"a": [1, 2.5, None, True, "ä\n\x7f\u2028", {}], "1": {}},
    [],
    "text",
    10**40,
    1e22,
    {1: 2, None: True},
    (1, 2),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_written_as_by_the_standard_library(shape: object) -> None:
    assert json_writer(allow_nan=False)(shape) == json.dumps(shape, ensure_ascii=False)


@pytest.mark.parametrize("shape", [*SHAPES[:5], {"b": [1.5, float("nan")], "a": "ä\ud800"}])
def test_canonical_text_has_no_spaces_and_its_keys_in_order(shape: object) -> None:
    written = json_writer(allow_nan=True, canonical=True)(shape)

    assert written == json.dumps(shape, sort_keys=True, separators=(",", ":"))


def test_numbers_that_json_has_not_are_refused_or_written_as_the_standard_library_does() -> None:
    shape = [float("nan"), float("inf"), -float("inf")]

    assert json_writer(allow_nan=True)(shape) == json.dumps(shape)
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_writer(allow_nan=False)(shape)


@pytest.mark.parametrize("value", [object(), b"bytes", MappingProxyType({}), {(1, 2): 3}])
def test_what_is_no_json_shape_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        json_writer(allow_nan=True)(value)


def test_a_shape_that_holds_itself_is_refused() -> None:
    round: list[object] = []
    round.append(round)

    with pytest.raises(RecursionError):
        json_writer(allow_nan=True)(round)
