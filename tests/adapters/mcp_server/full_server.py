"""A server with something of everything that the protocol has, to be compared with itself behind a gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

_Context = ServerRequestContext[Any, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
ICONS = [types.Icon(src="https://example.org/i.png", mime_type="image/png", sizes=["48x48"])]
SAID = types.Annotations(audience=["user"], priority=0.5, last_modified="2026-01-12T15:00:58Z")
PAGE = "text/html;profile=mcp-app"
POLICY = {"ui": {"csp": {"connectDomains": ["https://example.org"]}, "permissions": {"camera": {}}}}
BLOCKS: dict[str, types.ContentBlock] = {
    "text": types.TextContent(text="t", annotations=SAID, _meta={"vendor/b": 1}),
    "json": types.TextContent(text='{"a": 1}'),
    "image": types.ImageContent(data=PNG, mime_type="image/png", annotations=SAID, _meta={"vendor/b": 2}),
    "audio": types.AudioContent(data="UklGRg==", mime_type="audio/wav", annotations=SAID),
    "embedded text": types.EmbeddedResource(
        resource=types.TextResourceContents(uri="ui://app", mime_type=PAGE, text="<b>", _meta=POLICY), annotations=SAID
    ),
    "embedded bytes": types.EmbeddedResource(
        resource=types.BlobResourceContents(uri="test://pdf", mime_type="application/pdf", blob="UklGRg=="),
        _meta={"vendor/b": 3},
    ),
    "link": types.ResourceLink(
        uri="test://l", name="l", title="L", description="a link", mime_type="text/plain", size=3, icons=ICONS
    ),
}
PARAMETERS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Order",
    "$defs": {"place": {"$anchor": "place", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"what": {"type": "string"}, "to": {"$ref": "#/$defs/place"}, "free": True},
    "additionalProperties": False,
}
RETURNS: dict[str, Any] = {"title": "Receipt", "type": "object", "properties": {"a": {"type": "integer"}}}
BARE: dict[str, Any] = {"type": "object"}
TOOLS = [
    types.Tool(
        name="order",
        title="Order a thing",
        description="Order.",
        input_schema=PARAMETERS,
        output_schema=RETURNS,
        icons=ICONS,
        annotations=types.ToolAnnotations(title="Orders", read_only_hint=False, open_world_hint=True),
        _meta={"ui": {"resourceUri": "ui://app"}, "vendor/t": 1},
    ),
    types.Tool(name="for_apps", input_schema=BARE, _meta={"ui": {"visibility": ["app"]}}),
    *(types.Tool(name=name, input_schema=BARE) for name in ("bare", "nothing", "refuse", "fail", "steps", "log")),
    types.Tool(name="ask", input_schema={"type": "object", "properties": {"what": {"type": "string"}}}),
]
RESULTS = {
    "order": types.CallToolResult(
        content=[*BLOCKS.values()], structured_content={"a": 1, "more": None}, _meta={"vendor/r": {"deep": [1]}}
    ),
    "for_apps": types.CallToolResult(content=[types.TextContent(text="app")]),
    "bare": types.CallToolResult(content=[BLOCKS["text"]]),
    "nothing": types.CallToolResult(content=[]),
    "refuse": types.CallToolResult(
        content=[types.TextContent(text="sold out"), BLOCKS["link"]], structured_content={"left": 0}, is_error=True
    ),
}
RESOURCES = [
    types.Resource(
        uri="test://a",
        name="a",
        title="A",
        description="d",
        mime_type="text/plain",
        size=12,
        icons=ICONS,
        annotations=SAID,
        _meta={"k": 1},
    ),
    types.Resource(uri="ui://app", name="app", mime_type=PAGE),
    types.Resource(uri="test://bare", name="bare"),
]
TEMPLATES = [
    types.ResourceTemplate(
        uri_template="test://t/{x}",
        name="t",
        title="T",
        description="d",
        mime_type="text/plain",
        icons=ICONS,
        annotations=SAID,
        _meta={"z": 1},
    ),
    types.ResourceTemplate(uri_template="test://u/{y}", name="u"),
]
PROMPTS = [
    types.Prompt(
        name="p",
        title="P",
        description="d",
        icons=ICONS,
        arguments=[types.PromptArgument(name="a", title="A", description="ad", required=True)],
        _meta={"k": 1},
    ),
    types.Prompt(name="bare"),
]
FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTIONS: dict[str, types.InputRequest] = {
    "form": types.ElicitRequest(params=types.ElicitRequestFormParams(message="Who?", requested_schema=FORM)),
    "page": types.ElicitRequest(
        params=types.ElicitRequestURLParams(message="Sign in.", url="https://example.org/in", elicitation_id="in")
    ),
    "sample": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=types.TextContent(text="Sum?"))],
            max_tokens=10,
            system_prompt="Be brief.",
            temperature=0.5,
            stop_sequences=["."],
            model_preferences=types.ModelPreferences(hints=[types.ModelHint(name="small")], cost_priority=1.0),
        )
    ),
    "roots": types.ListRootsRequest(),
}
ANSWERS: Mapping[str, type[Any]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}


def full_server() -> Server[Any]:
    """Return the server."""
    server = Server(
        "full",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read,
        on_list_prompts=_list_prompts,
        on_get_prompt=_prompt,
        on_completion=_complete,
    )
    server.extensions["io.modelcontextprotocol/ui"] = {}
    return server


async def _list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def _call_tool(
    ctx: _Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    match params.name:
        case "fail":
            raise MCPError(-32_050, "the stock is closed", {"until": "Monday"})
        case "steps":
            await ctx.session.report_progress(1, 4, "one")
            await ctx.session.report_progress(2.5, 4, "two")
        case "log":
            line = types.LoggingMessageNotificationParams(level="warning", data={"left": [1]}, logger="stock")
            await ctx.session.send_notification(types.LoggingMessageNotification(params=line), ctx.request_id)
        case "ask":
            return await _asked(ctx, params, QUESTIONS[(params.arguments or {})["what"]])
        case _:
            return RESULTS[params.name]
    return RESULTS["nothing"]


async def _asked(ctx: _Context, params: Any, question: Any) -> types.CallToolResult | types.InputRequiredResult:
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer: Any = await ctx.session.send_request(question, ANSWERS[question.method])
    elif params.input_responses is None:
        return types.InputRequiredResult(input_requests={"q": question}, request_state="s")
    else:
        answer = params.input_responses["q"]
    text = answer.model_dump_json(by_alias=True, exclude_none=True, exclude={"result_type"})
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def _list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=RESOURCES)


async def _list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)


async def _read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://t/gone":
        raise MCPError(-32_002, "no such thing", {"uri": uri, "why": "sold"})
    if uri == "test://bare":
        return types.ReadResourceResult(contents=[])
    contents = [
        types.TextResourceContents(uri=uri, mime_type=PAGE, text="<b>", _meta=POLICY),
        types.BlobResourceContents(uri=f"{uri}/2", mime_type="image/png", blob=PNG, _meta={"q": 1}),
        types.TextResourceContents(uri=f"{uri}/3", text='{"a": 1}'),
    ]
    kept = contents[:1] if uri == "ui://app" else contents
    return types.ReadResourceResult(contents=kept, ttl_ms=60_000, _meta={"vendor/top": 1})


async def _list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=PROMPTS)


async def _prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    if params.name == "bare":
        raise MCPError(-32_050, "no words today", {"until": "Monday"})
    said = [types.PromptMessage(role="user", content=block) for block in BLOCKS.values()]
    last = types.PromptMessage(role="assistant", content=BLOCKS["text"])
    return types.GetPromptResult(description="said now", messages=[*said, last], _meta={"m": 1})


async def _complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [f"{params.argument.value}{end}" for end in ("lo", "na")]
    return types.CompleteResult(completion=types.Completion(values=values, total=7, has_more=True))
