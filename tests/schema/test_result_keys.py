from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import TypedDict

from toolcrib.schema import ToolSpec


class Weather(TypedDict):
    temp: float


KEYS = "file_content (str): What is in it.\n    {}sizes ({}, optional): How long."
STYLES = {
    "google": f"Read.\n\nReturns:\n    {KEYS.format('', 'List[int]')}",
    "google, bullets": f"Read.\n\nReturns:\n    dict: With these.\n    - {KEYS.format('- ', 'list[int]')}",
    "numpy": (
        "Read.\n\nReturns\n-------\nfile_content : str\n    What is in it.\nsizes : List[int], optional\n    How long."
    ),
    "numpy, a type": f"Read.\n\nReturns\n-------\ndict\n    {KEYS.format('', 'List[int]')}",
    "sphinx": f"Read.\n\n:returns: {KEYS.format('', 'List[int]')}\n:rtype: dict",
}


def shape_of(doc: str, annotation: Any = dict[str, Any]) -> str:
    def read() -> Any: ...

    read.__doc__, read.__annotations__ = doc, {"return": annotation}
    return ToolSpec.from_function(read, name="read").documented_shape


@pytest.mark.parametrize("doc", STYLES.values(), ids=STYLES)
def test_every_style_gives_the_keys_of_a_dict(doc: str) -> None:
    assert shape_of(doc) == "{file_content: str, sizes?: list[int]}"


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        (dict, "{a: int}"),
        (dict[str, int], "{a: int}"),
        (dict[str, int] | None, "{a: int} | None"),
        (int, ""),
        (list[dict[str, int]], ""),
        (Weather, ""),
        (dict[str, int] | list[int], ""),
        (Any, ""),
    ],
)
def test_only_a_plain_dict_has_keys_of_the_docstring(annotation: Any, shape: str) -> None:
    assert shape_of("Read.\n\nReturns:\n    a (int): One.", annotation) == shape


NESTED = """Read.

    Returns:
        stats (Dict): All of them.
            - sent (int): How many.
            - names (Dict[str, str]): Who.
        MA(5) (float): An average.
    """


@pytest.mark.parametrize(
    ("kind", "annotation", "shape"),
    [
        ("Dict", dict[str, Any], "{sent: int, names: dict[str, str]}"),
        ("List[Dict]", dict[str, Any], "list[{sent: int, names: dict[str, str]}]"),
        ("Dict", dict[str, dict[str, dict[str, int]]], "dict[str, {sent: int, names: dict[str, str]}]"),
    ],
)
def test_keys_inside_of_keys(kind: str, annotation: Any, shape: str) -> None:
    doc = NESTED.replace("stats (Dict)", f"stats ({kind})")

    assert shape_of(doc, annotation) == f"{{stats: {shape}, 'MA(5)': float}}"


@pytest.mark.parametrize("said", ["A dict.", "As text: the day.", "The size (in bytes) of it: a number.", "a: one"])
def test_prose_has_no_keys(said: str) -> None:
    assert shape_of(f"Read.\n\nReturns:\n    {said}") == ""


def test_a_key_is_a_key_at_the_beginning_of_a_line_alone() -> None:
    assert shape_of("Read.\n\nReturns:\n    a (int): One, or b (str): two.") == "{a: int}"


@pytest.mark.parametrize(
    ("said", "shape"),
    [
        ("dict: These.\n    - 'id' (int): the id\n    - 'status': open or closed", "{id: int, status: Any}"),
        ("dict: These.\n    ok (bool): done\n    n: how many", "{ok: bool, n: Any}"),
        ('ok (bool): done\n    meta (Dict[str, "X"], optional): the rest', "{ok: bool, meta?: Any}"),
        ("ok (bool): done\n    rows (list of {id, name}): rows", "{ok: bool, rows: Any}"),
        ("user (dict): who\n        id (int): the id\n        mail: its mail", "{user: {id: int, mail: Any}}"),
        ("ok (bool): done\n    Note: it may take long.", "{ok: bool}"),
        ("ok (bool): done,\n        which is: good", "{ok: bool}"),
    ],
)
def test_a_key_without_a_type_that_can_be_read_is_one_of_any(said: str, shape: str) -> None:
    assert shape_of(f"Read.\n\nReturns:\n    {said}") == shape
