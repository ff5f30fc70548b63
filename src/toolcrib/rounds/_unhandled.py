"""Unhandled: something in a reply that waits for the client, and is not a call of a tool in the toolset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolcrib.calls import fault_text
from toolcrib.errors import CommitError, RoundError
from toolcrib.formats import ProviderFormat, WireCall, WireReply, WireResult
from toolcrib.rounds._call import Answer
from toolcrib.rounds._results import ToolResult


@dataclass(frozen=True, slots=True)
class Unhandled:
    """Something in a reply that the host has to answer itself: a shell command, a request for approval.

    What is of an unknown type may wait for an answer, and is here too.

    Match on `kind`, read `item`, and give what `answer`, `refuse` or `leave` returns to the commit.

    Attributes:
        kind: The provider's word for it: `shell_call`, `mcp_approval_request`, `custom`, ...
        name: The name of the tool; the kind again without one.
        id: The id that its answer names.
        item: As it came.
        is_known: Whether the format knows how it is answered.
    """

    kind: str
    name: str
    id: str
    item: Mapping[str, Any]
    is_known: bool
    _needs: tuple[str, ...] = ()

    def answer(self, text: str | None = None, **fields: Any) -> ToolResult:
        """Return the answer.

        Args:
            text: The text of the provider's answer, where it takes one.
            fields: The fields of the provider's own item, block or part in its place: `approve=True`. Its type, the id
                and what it has to repeat of the call are added; of an unknown item it is the whole answer.

        Raises:
            RoundError: It takes no text, a text and fields are given, or a field is missing.
        """
        missing = [field for field in self._needs if field not in fields]
        if not self.is_known and (text is not None or not fields):
            wanted = "the fields of its whole answer, and no text, since it is not known"
        elif missing or (text is None) is not bool(fields):
            wanted = ", ".join(f"{field}=..." for field in missing) or "a text, or fields"
        else:
            return ToolResult(self.id, self.name, fields or text)
        raise RoundError((f"the answer to `{self.kind}` ({self.id}) takes {wanted}",))

    def refuse(self, reason: str) -> ToolResult:
        """Return an answer that says that it was not done, and why."""
        if not self.is_known:
            raise RoundError(
                (f"`{self.kind}` is not known: `answer` it with an item of the provider's, or `leave` it",)
            )
        return ToolResult(self.id, self.name, error=RuntimeError(reason))

    def leave(self) -> ToolResult:
        """Return that an unknown item needs no answer.

        Raises:
            RoundError: It is known, and the provider waits for an answer.
        """
        if self.is_known:
            raise RoundError(
                (f"the provider waits for the answer to `{self.kind}` ({self.id}): `answer` or `refuse` it",)
            )
        return ToolResult(self.id, self.name)


def unhandled_in(others: Iterable[WireCall], reply: WireReply, format: ProviderFormat) -> list[Unhandled]:
    """Return the calls of a reply that the host must answer itself, in order, and then the unknown parts.

    What did not come whole is not to be done, and is refused by itself: it is left out.
    """
    calls = [(call, True) for call in others] + [(item, False) for item in reply.unknown]
    return [
        Unhandled(call.kind, call.name, call.id, call.sent or {}, known, format.needs(call.kind) if known else ())
        for call, known in calls
        if not reply.fault_of(call)
    ]


def answers_to_unhandled(
    others: Iterable[WireCall], reply: WireReply, results: Iterable[Answer]
) -> tuple[dict[str, WireResult], list[Answer]]:
    """Return the answers to what is unhandled in a reply by id, and the other results.

    Raises:
        CommitError: One of them has no answer.
    """
    calls = {call.id: call for call in (*others, *reply.unknown)}
    if not calls:
        return {}, [*results]
    faults = {id: reply.fault_of(call) for id, call in calls.items()}
    found = {
        id: WireResult(calls[id], fault_text(fault, calls[id].arguments), is_error=True)
        for id, fault in faults.items()
        if fault
    }
    rest: list[Answer] = []
    for result in results:
        call = calls.get(result.call_id) if isinstance(result, ToolResult) else None
        if call is None or call.id in found or not isinstance(result, ToolResult):
            rest.append(result)  # a second one among them, which answers no call
        else:
            found[call.id] = _written(call, result)
    waiting = [call for id, call in calls.items() if id not in found]
    if waiting:
        mend = "give the commit what its `Unhandled` returns"
        raise CommitError(tuple(f"`{call.kind}` ({call.id}) waits for an answer: {mend}" for call in waiting))
    return found, rest


def _written(call: WireCall, result: ToolResult) -> WireResult:
    output: Any = result.output
    if result.error is not None:
        return WireResult(call, str(result.error), is_error=True)
    if isinstance(output, dict):
        return WireResult(call, "", fields=cast("dict[str, Any]", output))
    return WireResult(call, output or "")
