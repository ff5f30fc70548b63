"""Values that a step of a session returns: what the model wants, or why its reply ended without an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from toolcrib.formats import Item
from toolcrib.rounds._round import ToolRound
from toolcrib.rounds._transcript import Transcript
from toolcrib.rounds._usage import Usage

__all__ = ["Continue", "Finished", "NeedsTools", "Stopped"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NeedsTools:
    """The model asks for tools, or waits for another answer: answer and commit the round, or discard it."""

    round: ToolRound


@dataclass(frozen=True, slots=True)
class Continue:
    """The provider paused the reply: what came is in the transcript, and another step has it go on."""

    round: ToolRound


class _Answer:
    """A reply without calls, which may be added to the session's transcript.

    Attributes:
        text: The text as it came.
        problems: What was wrong with the reply, a sentence each.
        usage: What the step took; after `Session.run`, what the whole run took.
    """

    def __init__(self, round: ToolRound, transcript: Transcript, usage: Usage) -> None:
        self._round, self._transcript, self.usage = round, transcript, usage
        self.text, self.problems = round.text, round.problems

    async def commit(self) -> list[Item]:
        """Add what the model said to the session's transcript."""
        return await self._round.commit(self._transcript)

    def discard(self) -> None:
        """Drop it."""
        self._round.discard()


class Finished(_Answer, Generic[T]):
    """The model answered.

    Attributes:
        result: The text, or a value of the type that was asked for.
    """

    __match_args__ = ("result",)

    def __init__(self, round: ToolRound, result: T, transcript: Transcript, usage: Usage) -> None:
        super().__init__(round, transcript, usage)
        self.result = result

    def __repr__(self) -> str:
        return f"Finished({self.result!r})"


class Stopped(_Answer):
    """The reply ended before the model had answered: at a limit, in a refusal, in an error, cut.

    Nothing of it is in the transcript: `commit` adds the text that came, and another step asks again.

    Attributes:
        reason: Why it ended; see `StopKind`.
    """

    __match_args__ = ("reason",)

    def __init__(self, round: ToolRound, transcript: Transcript, usage: Usage) -> None:
        super().__init__(round, transcript, usage)
        self.reason = round.stop_kind

    def __repr__(self) -> str:
        return f"Stopped({self.reason!r})"
