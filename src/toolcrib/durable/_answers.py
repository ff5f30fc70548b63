"""Answers to the requests of durable work: yes, no, and what a call in doubt came to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Never

from toolcrib.approvals import require_request
from toolcrib.calls import ApprovalRequest, Denial, Grant, Identity
from toolcrib.durable._answered import AnswerStore
from toolcrib.durable._result_turns import result_as_json
from toolcrib.tools import Tool, checked_output, require_arguments


class Answers(ABC):
    """The source of answers for durable work; its turns and programs continue with each answer."""

    _chains = True  # whether a call may come to a turn

    @property
    @abstractmethod
    def _approvals(self) -> AnswerStore:
        """The store that the requests are in."""

    @abstractmethod
    async def _continue(self) -> None:
        """Continue the work whose answers the store has now."""

    @abstractmethod
    def _tool(self, name: str) -> Tool[..., Any]:
        """Return the tool of this name; raises UnregisteredToolError for an unknown one."""

    async def approve(self, request: ApprovalRequest | str, by: str | Identity = "host", **options: Any) -> None:
        """Approve a request, or the one with that id: its call is made, also one in doubt.

        Args:
            by: Who says yes, for the record.
            options: Other fields of the `Grant`, such as `override_args` or `user_input`.

        Raises:
            ApprovalError: The request is unknown or answered already.
            InvalidArguments: The tool does not take the `override_args`; the request stays pending.
        """
        asked = await self._request(request)
        grant = asked.grant(by, **options)
        if grant.override_args is not None and asked.asked_by is None:
            require_arguments(self._tool(asked.tool), grant.override_args)
        await self._answer(grant)

    async def done(
        self,
        request: ApprovalRequest | str,
        result: Any,
        by: str | Identity = "host",
        message: str = "",
        **unknown: Never,
    ) -> None:
        """Record the result of a call in doubt, and let its work go on with it: its tool is not executed again.

        The result of a turn may be a `Turn`, as its tool returns one: the chain goes on with it. That of a program's
        call may not, since the program goes on with it.

        Raises:
            ApprovalError: The request is unknown or answered already, or its call is not in doubt.
            InvalidOutput: The result is not of the type that the tool declares, or is a turn for a program; the request
                stays pending.
        """
        asked = await self._request(request)
        stored = result_as_json(asked, result, chains=self._chains)
        checked_output(self._tool(asked.tool), asked.tool, result)
        await self._answer(asked.done(stored, by, message, **unknown))

    async def deny(
        self,
        request: ApprovalRequest | str,
        *unnamed: Never,
        by: str | Identity = "host",
        message: str = "",
        **unknown: Never,
    ) -> None:
        """Deny a request, or the one with that id: its tool does not run, and the caller is shown `message`.

        Raises:
            ApprovalError: The request is unknown or answered already.
        """
        asked = await self._request(request)
        await self._answer(asked.deny(*unnamed, by=by, message=message, **unknown))

    async def _request(self, request: ApprovalRequest | str) -> ApprovalRequest:
        require_request(request)
        return (await self._approvals.show(request)).request if isinstance(request, str) else request

    async def _answer(self, answer: Grant | Denial) -> None:
        await self._approvals.answer(answer)
        await self._continue()
