from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.code import Toolkit
from toolcrib.code._budget import estimated_tokens, fitted
from toolcrib.code._listing import Detail, Listing
from toolcrib.code._prompts import render_description, render_prompt
from toolcrib.sandbox import Dialect, Host, Program, SandboxResult
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


class NoSandbox:
    """A sandbox that is all of Python and runs nothing."""

    async def run(self, program: Program, host: Host) -> SandboxResult:
        raise NotImplementedError


class Weather(TypedDict):
    city: str
    temp: float


@ez_tool
def get_weather(city: str, unit: str = "c") -> Weather:
    """Get the weather of a city.

    Args:
        city: As in "Oslo, Norway".
        unit: Celsius or Fahrenheit.
    """
    return {"city": city, "temp": 1.5}


def find_tool(number: int, words: str = "Find {n}. And more.") -> Any:
    return ez_tool(name=f"find_{number}", description=words.replace("{n}", str(number)))(get_weather.fn)


@cache
def forty() -> Toolkit:
    """Return a toolkit of many tools with everything to say of them."""
    return Toolkit([find_tool(n) for n in range(40)], sandbox=NoSandbox(), assist_tool_chaining=True)


def test_detail_goes_step_by_step_and_no_tool_without_a_word() -> None:
    marks = ["unit: Celsius", "# Returns", "And more.", "Find 39.", "def find_39", "find_39"]
    seen: list[tuple[bool, ...]] = []
    for budget in range(4500, 250, -50):
        prompt = forty().prompt(budget=budget)
        shown = tuple(mark in prompt for mark in marks)
        seen.append(shown)
        assert list(shown[3:]) == sorted(shown[3:])
        assert prompt == forty().prompt() or "`describe(" in prompt
        assert shown[-1] or ("There are 40 functions" in prompt and "`search_tools(" in prompt)

    assert (seen[0], seen[-1]) == ((True,) * 6, (False,) * 6)
    assert len(set(seen)) > 4


def test_what_is_left_is_given_to_the_first_tools() -> None:
    budget = estimated_tokens(forty().prompt()) - 100

    prompt = forty().prompt(budget=budget)

    first, last = prompt.index("unit: Celsius"), prompt.rindex("unit: Celsius")
    assert first < prompt.index("def find_1(") < last < prompt.index("def find_39(")
    assert prompt == forty().prompt(budget=budget)


WORDS = st.text(alphabet="ab .é", max_size=60) | st.just("Find {n}. " + "And much more of it, in all detail. " * 20)


@pytest.mark.parametrize("render", ["prompt", "description"])
@given(words=st.lists(WORDS, min_size=1, max_size=30), budget=st.integers(300, 4000))
def test_little_of_a_budget_is_wasted_and_none_is_exceeded(render: str, words: Sequence[str], budget: int) -> None:
    tools = {entry.name: entry for entry in Toolset([find_tool(n, text) for n, text in enumerate(words)])}
    seen: list[Listing] = []

    def rendered(listing: Listing) -> str:
        seen.append(listing)
        return (
            render_prompt(listing, None, None, Dialect())
            if render == "prompt"
            else render_description(listing, Dialect())
        )

    text = fitted(Listing(tools, returns=True), budget, rendered)

    left = budget - estimated_tokens(text)
    shown = {name: seen[-1].detail_of(name) for name in tools}
    steps = [
        replace(seen[-1], raised={**seen[-1].raised, name: Detail(detail - 1)})
        for name, detail in shown.items()
        if detail > Detail.FULL
    ]
    assert left >= 0
    assert left <= budget / 10 or all(estimated_tokens(rendered(more)) > budget - 15 for more in steps)


@pytest.mark.parametrize("sentence", [150, 10])
def test_of_a_description_that_is_longer_than_what_is_left_the_words_that_fit_are_shown(sentence: int) -> None:
    words = [
        f"{'Find' if n % sentence == 0 else 'more'}{'.' if n % sentence == sentence - 1 else ''}" for n in range(450)
    ]
    toolkit = Toolkit([find_tool(n, " ".join(words)) for n in range(3)], sandbox=NoSandbox())
    whole = estimated_tokens(toolkit.prompt())
    cut = 0

    for budget in range(300, whole, 50):
        prompt = toolkit.prompt(budget=budget)

        assert 0.9 * budget <= estimated_tokens(prompt) <= budget
        cut += " …" in prompt
        assert prompt.count(" …") <= 1
    assert cut > 5


def test_a_budget_that_is_too_small_gets_the_shortest_text() -> None:
    assert forty().prompt(budget=1) == render_prompt(
        replace(forty()._listing(), detail=Detail.SEARCH), None, None, Dialect()
    )


def test_without_a_budget_everything_is_shown() -> None:
    toolkit = Toolkit([get_weather], sandbox=NoSandbox())

    assert toolkit.prompt(budget=100_000) == toolkit.prompt()
    assert "describe" not in toolkit.prompt()


def test_a_large_set_is_shown_without_reading_all_of_it() -> None:
    rendered: list[str] = []

    class Counted(Listing):
        def function(self, name: str, *arguments: Any) -> str:
            rendered.append(name)
            return super().function(name, *arguments)

    tools = {f"find_{n}": Toolset([get_weather])["get_weather"] for n in range(2000)}
    prompt = render_prompt(Counted(tools), None, None, Dialect(), budget=400)

    assert "There are 2,000 functions, too many to list here." in prompt
    assert "Some others: find_0, find_1, " in prompt or "def find_0" in prompt
    assert len(rendered) < 200


def test_the_tools_own_names_for_search_are_respected() -> None:
    mine = ez_tool(name="describe")(lambda what: what)

    prompt = Toolkit([mine, get_weather], sandbox=NoSandbox()).prompt(budget=180)

    assert "`describe_(" in prompt


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("get_weather", 2),
        ("getWeather", 2),
        ("The weather of a city.", 6),
        ("def cat(file_name: str) -> dict: ...", 12),
        ("2026-01-31", 6),
        ("погода", 4),
    ],
)
def test_tokens_are_estimated_by_the_words_and_signs_of_a_text(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens
