"""Where the names of other libraries are, as the page about coming from them says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/migration.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
PLACES = {
    "toolcrib.hooks": ("HookRegistry", "PreHookFunc"),
    "toolcrib.tools": ("ToolRegistry", "ToolType", "Instruction"),
    "toolcrib.turns": ("StopReason", "AgentRegistry"),
    "toolcrib.approvals": ("AgentContext",),
    "toolcrib.adapters.pydantic_ai": ("create_agent", "stream_agent"),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in PLACES.items() for name in names])
def test_a_name_is_where_its_row_says(module: str, name: str) -> None:
    rows = [row for row in ROWS if re.search(rf"\b{name}\b", row) and f"`{module}`" in row]

    assert rows
    assert hasattr(import_module(module), name)
