"""Names that a package does not have: the error says where they are, and `hasattr` is false as ever."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.errors import _missing_imports
from toolcrib.pipeline import Pipeline
from toolcrib.toolsets import Toolset


@pytest.mark.parametrize(
    ("package", "name", "here"),
    [
        ("toolcrib", "GuardPolicy", ". Write: from toolcrib.serving import GuardPolicy"),
        ("toolcrib", "client_model", ". Write: from toolcrib.rounds import client_model"),
        ("toolcrib", "from_openapi", ". Write: from toolcrib.openapi import toolset"),
        ("toolcrib", "Budget", ". Write: from toolcrib.budgets import Budgets"),
        ("toolcrib", "MCPServerStdio", ". Write: from toolcrib.adapters.mcp_client import connect"),
        ("toolcrib", "Depends", ". Write: from toolcrib import Injected"),
        (
            "toolcrib",
            "guard",
            ". Write: from toolcrib.adapters.agent_framework import guard; or, for another framework, from that one's "
            "module: claude_agent_sdk, google_adk, langchain, openai_agents, pydantic_ai, smolagents",
        ),
        (
            "toolcrib",
            "create_agent",
            ". Write: from toolcrib.rounds import Session, or from toolcrib.adapters.pydantic_ai import create_agent",
        ),
        ("toolcrib", "Pipelin", ". Did you mean `Pipeline`?"),
        ("toolcrib", "Zyx", ""),
        ("toolcrib.budgets", "Budget", ". Write: from toolcrib.budgets import Budgets"),
        ("toolcrib.openapi", "from_openapi", ". Write: from toolcrib.openapi import toolset"),
    ],
)
def test_a_name_that_is_elsewhere_is_told_by_its_import(package: str, name: str, here: str) -> None:
    module = import_module(package)

    with pytest.raises(ImportError) as caught:
        exec(f"from {package} import {name}")
    with pytest.raises(AttributeError) as missing:
        getattr(module, name)

    assert str(caught.value) == f"cannot import name {name!r} from {package!r}{here}"
    assert str(missing.value) == f"module {package!r} has no attribute {name!r}{here}"
    assert not hasattr(module, name)
    assert getattr(module, name, None) is None


@pytest.mark.parametrize("line", _missing_imports._WORDS.values())  # pyright: ignore[reportPrivateUsage] -- the table
def test_each_import_that_is_told_works(line: str) -> None:
    for statement in line.split(", or "):
        exec(statement)


@pytest.mark.parametrize(
    ("found", "name", "here"),
    [
        (Toolset, "from_openapi", "`toolset(document)` of `toolcrib.openapi`"),
        (MemoryApprovalStore(), "approve", "store.answer(entry.request.grant(by=...))"),
        (MemoryApprovalStore(), "deny", "store.answer(entry.request.deny(by=...))"),
    ],
)
def test_a_method_of_other_frameworks_is_told_by_ours(found: object, name: str, here: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(found, name)

    assert here in str(caught.value)


def test_an_option_of_a_pipeline_that_is_elsewhere_is_told() -> None:
    gates: dict[str, Any] = {"gates": []}

    with pytest.raises(TypeError, match=r"Pipeline has no option `gates`\. Here it is Toolset\(\.\.\.\)\.with_gates"):
        Pipeline([], **gates)
