"""The tools, resources and prompts that the official conformance suite asks a server for."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

import mcp_types as types
from mcp.server.lowlevel.server import Server
from pydantic import BaseModel, Field

from toolcrib import Media, RunContext, Toolset, tool
from toolcrib.adapters.mcp_client import connect
from toolcrib.schema import Elicited
from toolcrib.tools import Tool, prompt, resource

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


class address(BaseModel):  # the name that the suite looks for
    street: str = ""
    city: str = ""


Address = address


_RICH: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "home", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {name: {"type": "string"} for name in ("contact", "phone", "email")}
    | {"address": {"$ref": "#/$defs/address"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contact": {"const": "phone"}}, "required": ["contact"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def _list_rich(ctx: Any, params: Any) -> types.ListToolsResult:
    rich = types.Tool(name="json_schema_2020_12_tool", description="Take a rich schema.", input_schema=_RICH)
    return types.ListToolsResult(tools=[rich])


# --- tasks


class Confirmed(BaseModel):
    confirm: bool


@tool(tags=("task_forbidden",))
async def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@tool(tags=("task",))
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return f"done {label}"


@tool(tags=("task_required",))
async def failing_job() -> str:
    """Fail after some time."""
    await asyncio.sleep(0.1)
    raise ValueError("the job failed")


@tool(tags=("task_required",))
async def protocol_error_job() -> str:
    """Have the server break off its work on this call, as no tool of a user does."""
    work = asyncio.current_task()
    assert work is not None
    work.cancel()
    await asyncio.sleep(1)
    return ""


@tool
async def confirm_delete(ctx: RunContext[Any], filename: str) -> str:
    """Delete a file, if its owner agrees."""
    answer = await ctx.elicit(f"Delete {filename}?", Confirmed)
    return f"{filename} deleted: {answer.accepted}"


@tool
async def multi_input(ctx: RunContext[Any]) -> str:
    """Ask two questions at once."""
    answers = await asyncio.gather(*(ctx.elicit(f"Question {n}", Confirmed) for n in (1, 2)))
    return f"{sum(answer.accepted for answer in answers)} accepted"


# --- what a tool asks its client


class Person(BaseModel):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


def _said(answer: Elicited[Any]) -> str:
    data = answer.data.model_dump() if isinstance(answer.data, BaseModel) else answer.data
    return f"action={answer.action}, content={json.dumps(data)}"


@tool
async def test_elicitation(ctx: RunContext[Any], message: str) -> str:
    """Ask the person at the client."""
    return f"User response: {_said(await ctx.elicit(message, Person))}"


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@tool
async def test_elicitation_sep1034_defaults(ctx: RunContext[Any]) -> str:
    """Ask by a form with defaults."""
    return f"Elicitation completed: {_said(await ctx.elicit('Check these', Defaults))}"


_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}


@tool
async def test_elicitation_sep1330_enums(ctx: RunContext[Any]) -> str:
    """Ask by a form with every kind of choice."""
    return f"Elicitation completed: {_said(await ctx.elicit('Choose', {'type': 'object', 'properties': _ENUMS}))}"


@tool
async def test_sampling(ctx: RunContext[Any], prompt: str) -> str:
    """Ask the client's model."""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100)).text}"


@tool
async def test_tool_with_logging(ctx: RunContext[Any]) -> str:
    """Log while it runs."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.log("info", line)
        await asyncio.sleep(0.05)
    return "Logged three times."


@tool
async def test_logging_tool(ctx: RunContext[Any]) -> str:
    """Log once."""
    await ctx.log("info", "a line")
    return "Logged."


_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def _name_from(ctx: RunContext[Any], question: str) -> str:
    answer = await ctx.elicit(question, _NAME, id="user_name")
    return answer.action if answer.data is None else str(answer.data["name"])


@tool
async def test_input_required_result_elicitation(ctx: RunContext[Any]) -> str:
    """Ask for a name."""
    return f"Hello, {await _name_from(ctx, 'What is your name?')}!"


@tool
async def test_streaming_elicitation(ctx: RunContext[Any]) -> str:
    """Ask for a name while a stream is open."""
    return f"Hello, {await _name_from(ctx, 'What is your name?')}!"


@tool
async def test_input_required_result_tampered_state(ctx: RunContext[Any]) -> str:
    """Ask for a name, with a state."""
    return f"Hello, {await _name_from(ctx, 'What is your name?')}!"


@tool
async def test_input_required_result_sampling(ctx: RunContext[Any]) -> str:
    """Ask the client's model."""
    return (await ctx.sample("What is the capital of France?", max_tokens=100)).text


@tool
async def test_missing_capability(ctx: RunContext[Any]) -> str:
    """Ask the client's model, which it may not have."""
    return (await ctx.sample("Say something", max_tokens=10)).text


@tool
async def test_input_required_result_list_roots(ctx: RunContext[Any]) -> str:
    """Return the client's folders."""
    return ", ".join(root.uri for root in await ctx.roots())


@tool
async def test_input_required_result_request_state(ctx: RunContext[Any]) -> str:
    """Ask for a confirmation."""
    form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    answer = await ctx.elicit("Please confirm", form)
    return f"state-ok: {answer.data}"


@tool
async def test_input_required_result_multiple_inputs(ctx: RunContext[Any]) -> str:
    """Ask for three things at once."""
    name, sampled, roots = await asyncio.gather(
        _name_from(ctx, "What is your name?"), ctx.sample("Generate a greeting", max_tokens=50), ctx.roots()
    )
    return f"{sampled.text}, {name}: {len(roots)} folders"


@tool
async def test_input_required_result_multi_round(ctx: RunContext[Any]) -> str:
    """Ask twice."""
    name = await _name_from(ctx, "Step 1: What is your name?")
    form = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    color = await ctx.elicit("Step 2: What is your favorite color?", form)
    return f"{name} likes {color.data}"


@tool
async def test_input_required_result_capabilities(ctx: RunContext[Any]) -> str:
    """Ask the client's model and a person at once: what the client lacks waits in the store, and holds up nothing."""
    name, sampled = await asyncio.gather(_name_from(ctx, "What is your name?"), ctx.sample("Make up a name"))
    return f"{name}, {sampled.text}"


@tool
async def test_trigger_tool_change(ctx: RunContext[Any]) -> str:
    """Have one more tool listed."""
    ctx.revealed[f"test_hidden_{sum(name in ctx.revealed for name in HIDDEN)}"] = None
    return "changed"


def _hidden(number: int) -> Any:
    async def hidden() -> str:
        """Do nothing; it is listed when it has been found."""
        return ""

    return tool(name=f"test_hidden_{number}", default=False, register=False)(hidden)


HIDDEN = {f"test_hidden_{number}": _hidden(number) for number in range(9)}
globals().update(HIDDEN)


@tool
async def test_custom_headers(
    region: Annotated[str, Field(default="", json_schema_extra={"x-mcp-header": "Region"})],
    priority: Annotated[int, Field(default=0, json_schema_extra={"x-mcp-header": "Priority"})],
    urgent: Annotated[bool, Field(default=False, json_schema_extra={"x-mcp-header": "Urgent"})],
) -> str:
    """Take arguments that clients send as headers as well."""
    return f"{region} {priority} {urgent}"


# --- resources and prompts


@resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """An image."""
    return _PNG


@resource("test://watched-resource", mime_type="text/plain")
async def watched() -> str:
    """A text that changes."""
    return "now"


@resource("test://template/{id}/data", mime_type="application/json", complete={"id": ["123", "456"]})
async def template_data(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt(complete={"arg1": ["paris", "park", "party"]})
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:
    """A prompt with a resource in it."""
    text = "Embedded resource content for testing."
    held = types.TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return [types.EmbeddedResource(resource=held), "Please process the embedded resource above."]


@prompt
async def test_prompt_with_image() -> list[Any]:
    """A prompt with an image in it."""
    return [Media("image/png", _PNG), "Please analyze the image above."]


@prompt
async def test_input_required_result_prompt(ctx: RunContext[Any]) -> str:
    """A prompt that asks the client for its context."""
    form = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    answer = await ctx.elicit("What context should the prompt use?", form)
    return f"Use this: {answer.data}"


# --- all of them, and a tool of another server, whose schema goes through as it is

_own = [made for made in [*globals().values()] if isinstance(made, Tool)]
tools = Toolset([*_own, connect(Server("elsewhere", on_list_tools=_list_rich))])
