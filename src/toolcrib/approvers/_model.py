"""Approver that is a second model: it may deny a request, and approve one whose rules list it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolcrib import approvals
from toolcrib.approvals import Approver
from toolcrib.calls import ApprovalRequest, Denial, Grant, Identity
from toolcrib.errors import explain_options

_log = logging.getLogger("toolcrib.approvers")


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """The verdict of a model about a request.

    Attributes:
        says: `yes`, `no`, or `unsure`.
        why: Its reason, for the record and for the model whose call it is.
        model: The model's name, for the record.
    """

    says: Literal["yes", "no", "unsure"]
    why: str = ""
    model: str = ""

    @property
    def message(self) -> str:
        """The reason, after the name of the model."""
        return ": ".join(filter(None, (self.model, self.why)))


@explain_options()
def model_approver(
    judge: Callable[[ApprovalRequest], Awaitable[ModelVerdict]], name: str, otherwise: Approver | None = None
) -> Approver:
    """Return an approver that asks a second model first, and people about all that it may not say yes to.

    A yes of it counts where each rule of the request is met by it alone: where a rule has it in a group, by its name. A
    request without rules goes to people, and so does one that asks about values of others (`request.origins`): they may
    be written for it. A no of it is a no. Its answers are those of `NAME (model)`, in the record and wherever they are
    shown.

    Args:
        judge: Asks the model, as `toolcrib.rounds.ModelJudge` does. What it raises is as `unsure`: people are asked.
        name: The name of the model in the rules.
        otherwise: The approver of people; when None, the call is suspended.
    """
    identity = Identity(name, "model")

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        if request.asked_by is None and request.consent is None and not request.in_doubt:
            try:
                verdict: Any = await judge(request)
                if not isinstance(verdict, ModelVerdict):
                    _log.warning("%s gave no ModelVerdict but %.200r; people are asked", name, verdict)
                    verdict = ModelVerdict("unsure")
            except Exception as error:  # of the host's model; a person decides then
                _log.warning("%s failed at a request about %s; people are asked: %r", name, request.tool, error)
                verdict = ModelVerdict("unsure")
            if verdict.says == "no":
                return request.deny(message=verdict.message, by=identity)
            if verdict.says == "yes" and _may_approve(identity, request):
                return request.grant(identity, message=verdict.message)
        return None if otherwise is None else await approvals.answer_of(otherwise, request)

    return approver


def _may_approve(identity: Identity, request: ApprovalRequest) -> bool:
    return bool(request.required) and not request.origins and not approvals.misfit(request.grant(identity), request)
