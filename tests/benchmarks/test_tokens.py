from __future__ import annotations

import json
import re

import bpe_openai
import pytest

from benchmarks.bfcl.tokens import PAGE, table, toolset, with_table
from toolcrib import Toolkit, Toolset
from toolcrib.code._budget import estimated_tokens
from toolcrib.formats import PROVIDERS

DAY = re.compile(r"Counted on \d+ \w+ \d{4}\.")


@pytest.fixture(scope="module")
def tools() -> Toolset:
    return toolset()


@pytest.fixture(scope="module")
def toolkit(tools: Toolset) -> Toolkit:
    return Toolkit(tools, sandbox="process", assist_tool_chaining=True)


def tokens(text: str) -> int:
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def test_the_table_in_the_docs_is_what_the_command_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    counted = table()

    assert f"\n{counted}\nCounted on " in page, "run `make tokens`"
    assert [name for name in PROVIDERS if f"`{name}`" not in counted] == []


def test_the_command_writes_the_table_and_the_day_in_the_place_of_those_before() -> None:
    page = PAGE.read_text(encoding="utf-8")

    written = with_table(page)

    assert DAY.sub("", written) == DAY.sub("", page)
    assert len(DAY.findall(written)) == 1


def test_prompts_and_definitions_take_few_tokens(tools: Toolset, toolkit: Toolkit) -> None:
    definitions = json.dumps(tools.definitions(format="openai"), separators=(",", ":"))

    assert len(list(tools)) == 66
    assert tokens(toolkit.prompt()) <= 4_060
    assert tokens(toolkit.prompt(budget=1_405)) <= 1_405
    assert tokens(definitions) <= 6_000


def test_the_keys_of_every_result_are_in_the_prompt(tools: Toolset, toolkit: Toolkit) -> None:
    prompt = toolkit.prompt()

    assert "def cat(file_name: str):" in prompt
    assert "# Returns: {file_content: str}" in prompt
    assert prompt.count("# Returns: ") == sum(bool(entry.tool.spec.returns_doc) for entry in tools) == 64


@pytest.mark.parametrize("budget", [300, 400, 600, 900, 1_300, 2_000, 3_000, 4_000])
def test_what_a_budget_gives_is_used_by_the_tokens_of_a_tokenizer(toolkit: Toolkit, budget: int) -> None:
    text = toolkit.prompt(budget=budget)

    assert 0.9 * budget <= tokens(text) <= 1.02 * budget
    assert estimated_tokens(text) <= budget


@pytest.mark.parametrize("page", sorted(PAGE.parent.glob("*.md")), ids=lambda page: page.stem)
def test_the_estimate_is_near_the_tokens_of_a_tokenizer(page: object) -> None:
    text = PAGE.parent.joinpath(str(page)).read_text(encoding="utf-8")

    assert 0.85 <= estimated_tokens(text) / tokens(text) <= 1.15
