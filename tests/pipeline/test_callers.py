"""A call that a provider says a program made runs only where its tool allows that."""

from __future__ import annotations

import pytest

from toolcrib.calls import Completed, Failed, ToolCall
from toolcrib.formats import ProviderOptions
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool

PROGRAMS = ProviderOptions(allowed_callers=("code_execution_20260120",))


@pytest.mark.parametrize(
    ("caller", "provider", "runs"),
    [
        ("", PROGRAMS, True),  # no provider says who made it
        ("direct", ProviderOptions(), True),
        ("direct", PROGRAMS, False),
        ("code_execution_20260120", PROGRAMS, True),
        ("code_execution_20990101", PROGRAMS, True),
        ("programmatic", PROGRAMS, False),
        ("programmatic", ProviderOptions(), False),
        ("something_new", ProviderOptions(allowed_callers=("direct", "programmatic")), False),
    ],
)
async def test_a_caller_has_to_be_allowed(caller: str, provider: ProviderOptions, runs: bool) -> None:
    @ez_tool(provider=provider)
    async def find(city: str) -> str:
        """Find a city."""
        return city

    made = await Pipeline([find]).run(ToolCall("find", {"city": "Oslo"}, caller=caller), Run())

    assert isinstance(made, Completed if runs else Failed)
    assert runs or "may call it" in made.message  # type: ignore[union-attr]
