"""Receivers of private values besides the values of arguments: what a tool takes by itself, and keys of objects."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from toolcrib.calls import ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Content, Provenance
from toolcrib.tools import Tool, ez_tool

DIARY = "Therapy with doctor Wellington about insomnia"
ANN = "ann@corp.com"


@ez_tool(effect="none", source="trusted", readers=[ANN, "Ann"])
async def diary() -> str:
    """Read the diary."""
    return DIARY


@ez_tool(effect="send", source="trusted")
async def post(body: Annotated[str, Content], to: str = "all@corp.com", cc: str = "") -> str:
    """Post."""
    return "posted"


@ez_tool(effect="send", source="trusted")
async def tell(body: Annotated[str, Content], audience: str = "everyone", thread: str = "") -> str:
    """Tell."""
    return "told"


@ez_tool(effect="send", source="trusted")
async def copy_to(body: Annotated[str, Content], to: str, archive: str = "https://archive.corp.com") -> str:
    """Send a copy."""
    return "sent"


@ez_tool(effect="send", source="trusted")
async def mail(body: Annotated[str, Content], to: str, importance: str = "normal", limit: int = 10) -> str:
    """Send."""
    return "sent"


@ez_tool(effect="send", source="trusted")
async def mail_all(body: Annotated[str, Content], to: dict[str, str]) -> str:
    """Send."""
    return "sent"


async def kind_of(tool: Tool[..., Any], **arguments: Any) -> str:
    run = Run(features=[Provenance()])
    run.add_user_message(f"Write to Ann, {ANN}; bob@corp.com asked for it")
    pipeline = Pipeline([diary, tool])
    await pipeline.run(ToolCall("diary", {}), run)
    return (await pipeline.run(ToolCall(tool.name, {"body": DIARY, **arguments}), run)).kind


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (post, {"cc": ANN}),
        (post, {"cc": ANN, "to": "all@corp.com"}),
        (tell, {"thread": ANN}),
        (copy_to, {"to": ANN}),
        (mail_all, {"to": {"bob@corp.com": "Ann"}}),
    ],
)
async def test_a_private_value_is_asked_about_where_it_goes_to_more_than_its_readers(
    tool: Tool[..., Any], arguments: Any
) -> None:
    assert await kind_of(tool, **arguments) == "suspended"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (mail, {"to": ANN}),
        (mail, {"to": ANN, "importance": "normal", "limit": 10}),
        (post, {"to": ANN}),
        (copy_to, {"to": ANN, "archive": ANN}),
        (mail_all, {"to": {ANN: "Ann"}}),
    ],
)
async def test_a_private_value_goes_to_its_readers_unasked(tool: Tool[..., Any], arguments: Any) -> None:
    assert await kind_of(tool, **arguments) == "completed"
