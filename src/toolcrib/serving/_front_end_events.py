"""Requests of a person at a front end, and the events that answer one: what an adapter translates to its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolcrib.approvals import GrantForm
from toolcrib.calls import ApprovalRequest, Done, Outcome
from toolcrib.formats import StopKind
from toolcrib.rounds import Usage


@dataclass(frozen=True, slots=True)
class FrontEndAnswer:
    """A person's yes or no to an approval request.

    Attributes:
        reason: Why; the model is shown that of a no.
        arguments: The arguments that the person put in place of the model's, if they did.
        done: The result of a call in doubt, where the person says that it was done.
        further: The bounds of further calls that a yes lets run, too. It counts when its words come back.
        words: The words of such a yes, as the person was shown them.
    """

    approved: bool
    reason: str = ""
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    done: Done | None = None
    further: GrantForm | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class FrontEndRequest:
    """The parts of a request that count: a new message of the person's, or answers. All else stays unread.

    Attributes:
        conversation: The client's id of the conversation.
        message_id: The client's id of the person's last message.
        text: That message.
        answers: Answers by the ids of the requests that they answer.
    """

    conversation: str
    message_id: str = ""
    text: str = ""
    answers: Mapping[str, FrontEndAnswer] = field(default_factory=dict[str, FrontEndAnswer])


@dataclass(frozen=True, slots=True)
class ReplyBegan:
    """The model is asked."""


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A piece of the model's text, or all of it where the session does not stream."""

    text: str


@dataclass(frozen=True, slots=True)
class CallShown:
    """A call that the model makes.

    Attributes:
        arguments: As the model sent them, secrets hidden: JSON shapes, or a text that is not JSON.
    """

    id: str
    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The outcome of a call."""

    id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call is suspended until the person answers.

    Attributes:
        further: The JSON schema of `FrontEndAnswer.further`; None where the answer is for this call alone.
        words: The words of a yes for further calls: it counts when they are sent back.
        problem: The reason why the answer before was not taken; empty without one.
    """

    request: ApprovalRequest
    further: Mapping[str, Any] | None = field(default=None, repr=False)
    words: str = ""
    problem: str = ""

    @property
    def text(self) -> str:
        """The question to the person."""
        return "\n\n".join(filter(None, (self.problem, self.words or self.request.text())))


@dataclass(frozen=True, slots=True)
class ExchangeEnded:
    """The end of what one request led to.

    Attributes:
        reason: `finished`, `suspended`, `stopped` by the client, or why the model's reply ended without an answer.
        problem: The problem, in a sentence; empty without one.
        usage: The usage of the exchange.
    """

    reason: StopKind | Literal["suspended", "stopped"]
    problem: str = ""
    usage: Usage = field(default_factory=Usage)


FrontEndEvent: TypeAlias = ReplyBegan | ReplyText | CallShown | CallEnded | ApprovalAsked | ExchangeEnded
"""The events of an exchange, in order; the last is an `ExchangeEnded`."""
