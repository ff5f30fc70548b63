"""`make tokens`: the tokens that the tools of four APIs take in prompts and definitions, as a table in docs/prompts.md.

Run it from the repository root as `python -m benchmarks.bfcl.tokens`. The tokens are those of OpenAI's `o200k_base`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bpe_openai

from benchmarks.bfcl._data import api_class
from toolcrib import Toolkit, Toolset
from toolcrib.code._listing import Detail
from toolcrib.code._prompts import render_prompt
from toolcrib.formats import PROVIDERS
from toolcrib.toolsets.search import searchable

__all__ = ["APIS", "PAGE", "table", "toolset", "with_table"]

APIS = ("GorillaFileSystem", "MessageAPI", "TradingBot", "TravelAPI")
PAGE = Path(__file__).parents[2] / "docs" / "prompts.md"
BUDGETS = (500, 1_000, 2_000, 3_000)
_BEGIN, _END = "<!-- tokens: written by `make tokens` -->\n", "<!-- end of tokens -->\n"
_TEXTS = (
    (Detail.FULL, "arguments, shapes of results, descriptions"),
    (Detail.NO_ARGUMENTS, "shapes of results, descriptions"),
    (Detail.NO_RETURNS, "descriptions"),
    (Detail.SIGNATURES, "signatures"),
    (Detail.NAMES, "names"),
    (Detail.SEARCH, "only how to search"),
)


def toolset() -> Toolset:
    """Return the 66 tools of the four APIs."""
    return Toolset([Toolset.from_object(api_class(name)()) for name in APIS])


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| what the model reads of 66 tools | tokens |", "|---|---:|"]
    return "\n".join([*lines, *(f"| {what} | {_count(text):,} |" for what, text in _rows(toolset()))]) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table as it is now, and the day."""
    before, _, rest = page.partition(_BEGIN)
    day = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    return f"{before}{_BEGIN}\n{table()}\nCounted on {day}.\n\n{_END}{rest.partition(_END)[2]}"


def _rows(tools: Toolset) -> Iterator[tuple[str, str]]:
    for detail, what in _TEXTS:
        yield f"code mode: {what}", _prompt(tools, detail, chaining=True)
    yield "code mode without shapes of results: arguments, descriptions", _prompt(tools, Detail.FULL, chaining=False)
    for budget in BUDGETS:
        yield f"code mode with `budget={budget:_}`", Toolkit(tools, assist_tool_chaining=True).prompt(budget)
    for format in PROVIDERS:
        yield f"definitions for `{format}`, as they are sent", _sent(tools.definitions(format=format))
    yield "definition of the `search_tools` of `searchable`", _sent(searchable(tools).definitions(format="openai"))


def _prompt(tools: Toolset, detail: Detail, *, chaining: bool) -> str:
    toolkit = Toolkit(tools, sandbox="process", assist_tool_chaining=chaining)
    return render_prompt(replace(toolkit._listing(), detail=detail), None, None, toolkit._dialect())


def _sent(definitions: Any) -> str:
    return json.dumps(definitions, ensure_ascii=False, separators=(",", ":"))  # as the providers' SDKs do


def _count(text: str) -> int:
    return len(bpe_openai.get_encoding("o200k_base").encode(text))


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(table(), end="")
