from __future__ import annotations

import logging
from typing import Annotated

import pytest
from pydantic import Field

from toolcrib.schema import ToolSpec

GOOGLE = """Get the weather.

    It is asked of a station: the nearest one.

    Args:
        city: City and state, e.g. "San Francisco, CA",
            or only a city.
        unit (str, optional): Celsius or
            Fahrenheit.
        *stations: Which ones.

    Keyword Args:
        days: How many.

    Returns:
        dict: The weather,
            day by day.

    Raises:
        KeyError: No such city.
    """

NUMPY = """Get the weather.

    Parameters
    ----------
    city : str
        City and state, e.g. "San Francisco, CA",
        or only a city.
    unit : str, optional
        Celsius or Fahrenheit.
    *stations
        Which ones.
    days : int
        How many.

    Returns
    -------
    dict
        The weather, day by day.
    """

SPHINX = """Get the weather.

    :param city: City and state, e.g. "San Francisco, CA",
        or only a city.
    :param str unit: Celsius or Fahrenheit.
    :param stations: Which ones.
    :param days: How many.
    :type days: int
    :returns: The weather, day by day.
    :rtype: dict
    """


def spec_of(doc: str | None) -> ToolSpec:
    def documented(city: str, unit: str = "c", *stations: str, days: int = 1) -> dict[str, int]:
        return {}

    documented.__doc__ = doc
    return ToolSpec.from_function(documented, name="get_weather")


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_every_style_describes_tool_and_parameters(doc: str) -> None:
    spec = spec_of(doc)

    assert spec.description == "Get the weather."
    assert {name: part["description"] for name, part in spec.parameters["properties"].items()} == {
        "city": 'City and state, e.g. "San Francisco, CA", or only a city.',
        "unit": "Celsius or Fahrenheit.",
        "stations": "Which ones.",
        "days": "How many.",
    }
    assert spec.returns_doc == "The weather, day by day."


@pytest.mark.parametrize(
    ("doc", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("First of\n    two lines.\n\n    More.", "First of two lines."),
        ("Note: not a section.", "Note: not a section."),
        ("Summary.\n    Args:\n        city: x", "Summary."),
        ("Args:\n        city: x", ""),
        (":param city: x", ""),
        ("Parameters\n    ----------\n    city : str\n        x", ""),
        ("Summary.\n    :param city: x", "Summary."),
    ],
)
def test_the_description_is_the_first_paragraph(doc: str | None, description: str) -> None:
    assert spec_of(doc).description == description


@pytest.mark.parametrize(
    "doc",
    [
        "Args:\n        city: x",
        "Summary.\n    Args:\n        city: x\n    Returns:\n        y",
        "Summary.\n\n    Arguments:\n      city (str): x",
        "Summary.\n\n    Parameters:\n        city: x\n\n    :param unit: y",
        "Summary.\n    :param city: x\n    :raises KeyError: never",
        "Summary.\n\n    Other Parameters\n    ----------------\n    city\n        x",
    ],
)
def test_parameters_are_found_in_untidy_docstrings(doc: str) -> None:
    assert spec_of(doc).parameters["properties"]["city"]["description"] == "x"


def test_a_field_description_stands_above_the_docstring() -> None:
    def tool(city: Annotated[str, Field(description="from the field")]) -> None:
        """Do.

        Args:
            city: from the docstring
        """

    spec = ToolSpec.from_function(tool, name="tool")

    assert spec.parameters["properties"]["city"]["description"] == "from the field"


def test_a_given_description_replaces_the_docstring_and_keeps_its_parameters() -> None:
    def tool(city: str) -> None:
        """Do.

        Args:
            city: Where.
        """

    spec = ToolSpec.from_function(tool, name="tool", description="Given.")

    assert spec.description == "Given."
    assert spec.doc.startswith("Do.")
    assert spec.parameters["properties"]["city"]["description"] == "Where."


def test_docstrings_that_do_not_fit_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    doc = "Summary.\n\n    Args:\n        nobody: unknown\n        no colon here\n      badly indented: yes\n"

    with caplog.at_level(logging.DEBUG):
        properties = spec_of(doc).parameters["properties"]

    assert "description" not in properties["city"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("doc", "returns"),
    [
        ("Read.\n\nReturns:\n    file_content (str): The content.", "file_content (str): The content."),
        (
            "Read.\n\nReturns:\n    name (str): What.\n    sizes (List[int]): How long.",
            "name (str): What. sizes (List[int]): How long.",
        ),
        ("Read.\n\nReturns\n-------\ntemp : float\n    In degrees.", "temp (float): In degrees."),
        (
            "Read.\n\nReturns\n-------\na : int\n    One.\nb : str\n    Two.",
            "a (int): One. b (str): Two.",
        ),
        ("Read.\n\n:returns: a (int): One.\n    b (str): Two.", "a (int): One. b (str): Two."),
        ("Read.\n\nReturns:\n    As text: the day.", "As text: the day."),
        ("Read.\n\nReturns:\n    dict[str, int]: How many.", "How many."),
        ("Read.\n\nReturns:\n    int | None: How many.", "How many."),
        ("Read.\n\nReturns:\n    How many.", "How many."),
    ],
)
def test_the_keys_of_a_result_are_kept_and_its_own_type_is_not(doc: str, returns: str) -> None:
    assert spec_of(doc).returns_doc == returns
