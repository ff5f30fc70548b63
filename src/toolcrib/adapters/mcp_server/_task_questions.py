"""Questions of a task: what its tool asks the client, kept until the client fetches them and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from os import urandom
from typing import Any, Literal, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel, ValidationError

from toolcrib.adapters.mcp_server._client_link import declares, lets_through
from toolcrib.schema import ClientFeature, ClientRoot, Elicited, ElicitRequest, LogLine, Sampled, SampleRequest

__all__ = ["TaskQuestions"]

_Kind = Literal["elicitation/create", "sampling/createMessage", "roots/list"]
_ANSWERS: Mapping[_Kind, type[BaseModel]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResultWithTools,
    "roots/list": types.ListRootsResult,
}


class TaskQuestions:
    """The client of a task's call: its questions wait until the client comes for them.

    Args:
        declared: What the client declares that it can do.
        policy: What the host lets through, as `ServerOptions.ask_client` has it.
        changed: Called when there is a question more, or less.

    Attributes:
        pending: The requests without an answer, by their keys, as JSON shapes.
    """

    def __init__(
        self, declared: types.ClientCapabilities | None, policy: Collection[str], changed: Callable[[], object]
    ) -> None:
        self._declared, self._policy, self._changed = declared, policy, changed
        self.pending: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Take answers by their keys; those to no question are left out.

        Raises:
            MCPError: One is not of the kind that its question wants; none of them is taken.
        """
        read: dict[str, BaseModel] = {}
        for key, response in responses.items():
            if key in self.pending:
                kind: _Kind = self.pending[key]["method"]
                try:
                    read[key] = _ANSWERS[kind].model_validate(response)
                except ValidationError as error:
                    raise MCPError(INVALID_PARAMS, f"the answer `{key}` is no result of {kind}: {error}") from None
        for key, result in read.items():
            del self.pending[key]
            self._waiting.pop(key).set_result(result)
        if read:
            self._changed()

    async def ask(self, method: _Kind, params: Mapping[str, Any], key: str = "") -> Any:
        """Return the client's answer to a request, whenever it comes."""
        key = key or f"ask_{urandom(8).hex()}"
        self.pending[key] = {"method": method, "params": dict(params)}
        self._waiting[key] = waiting = asyncio.get_running_loop().create_future()
        self._changed()
        try:
            return await waiting
        finally:
            self.pending.pop(key, None)
            self._waiting.pop(key, None)

    # --- the link of the run

    def can(self, feature: ClientFeature) -> bool:
        return feature != "log" and lets_through(self._policy, feature) and declares(self._declared, feature)

    async def elicit(self, request: ElicitRequest) -> Elicited[dict[str, Any]]:
        if request.url is None:
            params = {"mode": "form", "message": request.message, "requestedSchema": dict(request.schema)}
        else:
            params = {"mode": "url", "message": request.message, "url": request.url, "elicitationId": request.id}
        answer: types.ElicitResult = await self.ask("elicitation/create", params)
        return Elicited(answer.action, None if answer.content is None else dict(answer.content))

    async def sample(self, request: SampleRequest) -> Sampled:
        answer: types.CreateMessageResultWithTools = await self.ask("sampling/createMessage", request.params)
        content: Any = answer.model_dump(by_alias=True, mode="json", exclude_none=True)["content"]
        return Sampled(_list(content), answer.model, answer.stop_reason, answer.role)

    async def roots(self) -> Sequence[ClientRoot]:
        answer: types.ListRootsResult = await self.ask("roots/list", {})
        return [ClientRoot(str(root.uri), root.name) for root in answer.roots]

    async def log(self, line: LogLine) -> None:
        return


def _list(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]
