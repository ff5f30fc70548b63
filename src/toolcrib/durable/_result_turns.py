"""Turns in the result that an approver gives of a turn in doubt, as JSON and back: its chain goes on with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from toolcrib.calls import ApprovalRequest
from toolcrib.errors import ApprovalError, FieldProblem, InvalidOutput, UnregisteredToolError
from toolcrib.tools import Tool
from toolcrib.turns import Turn

_TURN = "turn"
_NO_CHAIN = "a Turn cannot be the result of a program's call; give what the program goes on with"
_LEFT_OUT: Mapping[str, Any] = {
    "timeout": 60, "metadata": {}, "start_time": None, "end_time": None, "stop_reason": None, "output": None
}  # fmt: skip


def result_as_json(request: ApprovalRequest, result: Any, *, chains: bool) -> Any:
    """Return a result with each turn as `{"turn": ...}`; of a stream, the list of its values.

    Raises:
        InvalidOutput: One is a turn, and the call is not part of a chain.
    """
    if isinstance(result, Turn):
        if not chains:
            raise InvalidOutput(request.tool, (FieldProblem("", _NO_CHAIN),))
        return {_TURN: cast("Turn[Any]", result).to_dict()}
    if not isinstance(result, list):
        return result
    return [result_as_json(request, item, chains=chains) for item in cast("list[Any]", result)]


def result_with_turns(request: ApprovalRequest, result: Any, tools: Iterable[Tool[..., Any]]) -> Any:
    """Return a result with the turns that `result_as_json` described.

    Of a turn that an approver wrote, `tool_name` and `kwargs` are enough; its id follows from the request then.

    Raises:
        ApprovalError: One of them is for no tool of the agent's, or is not a turn.
    """
    if isinstance(result, list):
        several = enumerate(cast("list[Any]", result))
        return [_revived(request, f"{request.id}:{number}", item, tools) for number, item in several]
    return _revived(request, request.id, result, tools)


def _revived(request: ApprovalRequest, name: str, value: Any, tools: Iterable[Tool[..., Any]]) -> Any:
    fields = _mapping(value)
    turn = _mapping(fields.get(_TURN))
    if len(fields) != 1 or "tool_name" not in turn or "kwargs" not in turn:
        return value
    data: Mapping[str, Any] = {"uuid": str(uuid5(NAMESPACE_URL, f"toolcrib:{name}")), **_LEFT_OUT, **turn}
    try:
        return Turn.from_dict(data, tools)
    except (UnregisteredToolError, ValueError, TypeError) as error:
        raise ApprovalError(request.tool, f"its result is a turn that cannot be made: {error}") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
