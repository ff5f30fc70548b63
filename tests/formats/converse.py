"""Types of Bedrock's Converse, written from its API reference: its SDK gives and takes plain dicts."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

BLOCKS = frozenset(  # the keys of `ContentBlock` in botocore 1.44
    {"text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint"}
    | {"reasoningContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval"}
)
STOPS = frozenset(  # `StopReason`
    {"end_turn", "tool_use", "max_tokens", "stop_sequence", "guardrail_intervened", "content_filtered"}
    | {"malformed_model_output", "malformed_tool_use", "model_context_window_exceeded"}
)


def _one(union: Any) -> Any:
    if len(union) != 1:
        raise ValueError(f"a union has one key, and this has {sorted(union)}")
    return union


UseId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.:-]{1,64}$")]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class Use(TypedDict):
    toolUseId: UseId
    name: Name
    input: dict[str, Any]


class Source(TypedDict):
    bytes: bytes


class Image(TypedDict):
    format: Literal["png", "jpeg", "gif", "webp"]
    source: Source


class Document(TypedDict):
    format: Literal["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9\s()\[\]-]{1,200}$")]
    source: Source


class ResultPart(TypedDict, total=False):
    text: str
    json: Any
    image: Image
    document: Document


class Result(TypedDict):
    toolUseId: UseId
    content: list[Annotated[ResultPart, AfterValidator(_one)]]
    status: NotRequired[Literal["success", "error"]]


class Block(TypedDict, total=False):
    text: str
    image: Image
    toolUse: Use
    toolResult: Result
    reasoningContent: dict[str, Any]
    citationsContent: dict[str, Any]


class Message(TypedDict):
    role: Literal["user", "assistant"]
    content: list[Annotated[Block, AfterValidator(_one)]]


class InputSchema(TypedDict):
    json: dict[str, Any]


class Specification(TypedDict, total=False):
    name: Name
    description: Annotated[str, Field(min_length=1)]
    inputSchema: InputSchema
    strict: bool


class Tool(TypedDict):
    toolSpec: Specification


class Choice(TypedDict, total=False):
    auto: dict[str, Any]
    any: dict[str, Any]
    tool: dict[str, Any]


ToolChoice = Annotated[Choice, AfterValidator(_one)]
Reply = dict[str, Any]
Event = Annotated[dict[str, Any], AfterValidator(_one)]
