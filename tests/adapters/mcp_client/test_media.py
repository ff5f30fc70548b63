"""What a server sends besides text and JSON, as media: alone, in a list, and inside a structured result."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from pydantic import BaseModel

from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import build_server
from toolcrib.calls import Completed, Media, ToolCall
from toolcrib.pipeline import Pipeline
from toolcrib.tools import ez_tool

DOT = Media("image/png", b"dot", name="dot.png")
HUM = Media("audio/wav", b"hum", name="hum.wav", title="A hum", description="of a fridge")
DASH = Media("image/png", b"das", name="dash.png")
LOG = Media("text/plain", b"log", url="file:///var/log/a.txt", name="a.txt")


class Chart(BaseModel):
    title: str
    image: Media


async def arrived(made: Any) -> Any:
    """Return what a client's call of a tool that returns this gives."""

    @ez_tool
    async def untyped() -> Any:
        return made

    return await value_of(untyped)


async def value_of(tool: Any) -> Any:
    async with connect(build_server([tool])).open() as tools:
        outcome = await Pipeline(tools).run(ToolCall(tool.name, {}))
    assert isinstance(outcome, Completed), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (DOT, DOT),
        (["a dot", DOT], ["a dot", DOT]),
        (HUM, HUM),
        (Media("image/png", b"dot"), Media("image/png", b"dot")),
        (LOG, LOG),
        (types.ImageContent(data="ZG90", mime_type="image/png"), Media("image/png", b"dot")),
    ],
    ids=["image", "in a list", "sound", "without a name", "file", "block"],
)
async def test_media_arrive_as_media(made: Any, value: Any) -> None:
    assert await arrived(made) == value


@pytest.mark.parametrize("said", [["dot.png"], {"name": 5, "more": "x"}, "dot.png"])
async def test_names_that_a_server_gives_in_another_shape_are_none(said: Any) -> None:
    block = types.ImageContent(data="ZG90", mime_type="image/png", _meta={"toolcrib/media": said})

    assert await arrived(block) == Media("image/png", b"dot")


async def test_a_link_is_a_dict_with_its_uri() -> None:
    value = await arrived(Media("image/png", url="https://example.org/a.png", name="a.png"))

    assert value == {"uri": "https://example.org/a.png", "name": "a.png", "mime_type": "image/png"}


async def test_media_inside_a_structured_result_are_where_they_were() -> None:
    @ez_tool
    async def draw() -> list[Chart]:
        return [Chart(title="a", image=DOT), Chart(title="b", image=DASH), Chart(title="c", image=DOT)]

    value = await value_of(draw)

    assert [chart["title"] for chart in value["result"]] == ["a", "b", "c"]
    assert [chart["image"].name for chart in value["result"]] == ["dot.png", "dash.png", "dot.png"]
    assert [chart["image"] for chart in value["result"]] == [DOT, DASH, DOT]
