"""Requests of a tool to the client that made its call: questions to a person, samplings, folders, log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeAlias, cast

from typing_extensions import TypeVar

T = TypeVar("T", default=Any)

ClientFeature: TypeAlias = Literal["elicit", "elicit_url", "sample", "sample_tools", "roots", "log"]
"""The kind of a request: a form, a page to visit, a text of its model, one with tools, folders, a log line."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The level of a line that a tool logs, in MCP's words."""


@dataclass(frozen=True, slots=True)
class ElicitRequest:
    """A question to the person at the client: fields to fill in, or a page to visit.

    Attributes:
        message: The question.
        schema: The fields, as the JSON schema of a flat object; empty with a `url`.
        url: The page.
        id: Names the question among those of its call; a page has one always.
    """

    message: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Elicited(Generic[T]):
    """The outcome of a question: `data` is there when it was accepted. It approves no call.

    Attributes:
        action: The person filled in the form or went to the page, declined, or closed it without an answer.
        data: The answer, of the type that was asked for; of a JSON schema, the fields; of a page, None.
    """

    action: Literal["accept", "decline", "cancel"]
    data: T | None = None

    @property
    def accepted(self) -> bool:
        """True if the person filled in the form, or went to the page."""
        return self.action == "accept"


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request for a text of the client's model.

    Attributes:
        params: The parameters of `sampling/createMessage` of the Model Context Protocol, as JSON shapes.
    """

    params: Mapping[str, Any]

    @property
    def has_tools(self) -> bool:
        """True if the model is offered tools."""
        return bool(self.params.get("tools"))

    @property
    def last_text(self) -> str:
        """The text of the last message, without media."""
        messages: Sequence[Any] = self.params.get("messages") or ({},)
        content: Any = messages[-1].get("content", ())
        blocks: list[Any] = [*cast("Sequence[Any]", content)] if isinstance(content, list | tuple) else [content]
        texts = [cast("Mapping[str, Any]", block).get("text", "") for block in blocks if isinstance(block, Mapping)]
        return "\n".join(str(text) for text in texts if text)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The answer of the client's model.

    Attributes:
        content: The blocks of the answer, as JSON shapes of the protocol.
        model: The model, as the client names it.
        stop_reason: Why it ended: `endTurn`, `maxTokens`, `toolUse`, or a word of the client's.
        role: Whose message it is.
    """

    content: Sequence[Mapping[str, Any]]
    model: str = ""
    stop_reason: str | None = None
    role: str = "assistant"

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")

    @property
    def tool_uses(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that the model wants to use, each with `id`, `name` and `input`."""
        return tuple(block for block in self.content if block.get("type") == "tool_use")

    def message(self) -> dict[str, Any]:
        """Return the answer as a message, for the next request."""
        return {"role": self.role, "content": [dict(block) for block in self.content]}

    def results(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the message that answers the tools that the model wants to use, for the next request.

        Args:
            texts: The results, by the `id` of their use.

        Raises:
            ValueError: One that the model waits for is missing.
        """
        missing = [use["name"] for use in self.tool_uses if use["id"] not in texts]
        if missing:
            raise ValueError(f"the model waits for the results of {', '.join(missing)}: give each by the id of its use")
        content = [
            {"type": "tool_result", "toolUseId": key, "content": [{"type": "text", "text": text}]}
            for key, text in texts.items()
        ]
        return {"role": "user", "content": content}


@dataclass(frozen=True, slots=True)
class ClientRoot:
    """A folder that the client lets its servers work in."""

    uri: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call.

    Attributes:
        progress: The part that is done; it grows with each report.
        total: The number that it grows to, if that is known.
        message: The step that is done now.
    """

    progress: float
    total: float | None = None
    message: str | None = None

    def __str__(self) -> str:
        done = f"{self.progress:g}" if self.total is None else f"{self.progress:g} of {self.total:g}"
        return f"{done}: {self.message}" if self.message else done


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line for the client's log.

    Attributes:
        data: A text, or any value that JSON can carry.
        logger: Names the part that it comes from.
    """

    level: LogLevel
    data: Any
    logger: str | None = None


class ClientLink(Protocol):
    """The client that made a call, and what it can be asked for meanwhile. A way in that has one gives it to the run.

    It passes each request on as it is: answers are checked by what asks, and no answer is an approval.
    """

    def can(self, feature: ClientFeature) -> bool:
        """Return whether the client takes such requests, and the host lets them through."""
        ...

    async def elicit(self, request: ElicitRequest) -> Elicited[dict[str, Any]]:
        """Ask the person at the client; an accepted form has its fields as `data`."""
        ...

    async def sample(self, request: SampleRequest) -> Sampled:
        """Ask the client's model."""
        ...

    async def roots(self) -> Sequence[ClientRoot]:
        """Return the folders that the client lets its servers work in."""
        ...

    async def log(self, line: LogLine) -> None:
        """Send the client a line for its log; one below the level that it wants is left out."""
        ...


class CallClient(Protocol):
    """The receiver of a call's requests to its client, or else to the host: `RunContext` passes them on to it."""

    async def elicit(self, message: str, form: Any, url: str | None, id: str) -> Elicited[Any]:
        """Ask a person; see `RunContext.elicit`."""
        ...

    async def sample(self, messages: Any, tools: Any, options: Mapping[str, Any]) -> Sampled:
        """Ask a model; see `RunContext.sample`."""
        ...

    async def roots(self) -> tuple[ClientRoot, ...]:
        """Return the folders; see `RunContext.roots`."""
        ...

    async def log(self, line: LogLine) -> None:
        """Log a line; see `RunContext.log`."""
        ...
