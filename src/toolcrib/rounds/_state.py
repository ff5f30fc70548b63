"""RoundState: what a round and its plan share."""

from __future__ import annotations

from toolcrib.errors import RoundError
from toolcrib.formats import ProviderFormat, WireReply
from toolcrib.rounds._round_call import Work

__all__ = ["RoundState"]


class RoundState:
    """The reply as it came, its calls, and whether it was committed."""

    __slots__ = ("format", "reply", "settled", "works")

    def __init__(self, format: ProviderFormat, reply: WireReply, works: tuple[Work, ...]) -> None:
        self.format, self.reply, self.works = format, reply, works
        self.settled = ""  # `committed` or `discarded`, once it is

    def open(self, error: type[RoundError] = RoundError) -> None:
        """Raise the error when the round is over."""
        if self.settled:
            raise error((f"the round was {self.settled} before",))

    def discard(self) -> None:
        """Drop the round."""
        self.open()
        self.settled = "discarded"
        for work in self.works:
            work.cancel()
