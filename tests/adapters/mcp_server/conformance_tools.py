"""The tools that the official conformance suite asks a server for."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from typing import Any

import mcp_types as types
from pydantic import BaseModel, ConfigDict

from toolcrib import tool, tool_input

_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
_WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0").decode()


def _image() -> types.ImageContent:
    return types.ImageContent(data=base64.b64encode(_PNG).decode(), mime_type="image/png")


@tool
async def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool
async def test_image_content() -> types.ImageContent:
    """Return an image."""
    return _image()


@tool
async def test_audio_content() -> types.AudioContent:
    """Return a sound."""
    return types.AudioContent(data=_WAV, mime_type="audio/wav")


@tool
async def test_embedded_resource() -> types.EmbeddedResource:
    """Return a resource."""
    text = "This is an embedded resource content."
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@tool
async def test_multiple_content_types() -> list[Any]:
    """Return a text, an image and a resource."""
    held = types.TextResourceContents(
        uri="test://mixed-content-resource", mime_type="application/json", text='{"test": "data", "value": 123}'
    )
    return ["Multiple content types test:", _image(), types.EmbeddedResource(resource=held)]


@tool
async def test_error_handling() -> str:
    """Fail."""
    raise ValueError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress() -> AsyncGenerator[str]:
    """Report progress."""
    for done in ("0 of 100", "50 of 100", "100 of 100"):
        yield done
        await asyncio.sleep(0.01)


@tool(requires_approval=True)
async def test_elicitation(message: str) -> str:
    """Ask the person at the client."""
    return f"User response: {message}"


class address(BaseModel):  # the name that the suite looks for
    street: str = ""
    city: str = ""


Address = address


@tool_input(name="json_schema_2020_12_tool", output=str)
class Dialect(BaseModel):
    """Tool with JSON Schema 2020-12 features."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"$schema": "https://json-schema.org/draft/2020-12/schema"}
    )

    name: str = ""
    address: Address = Address()
