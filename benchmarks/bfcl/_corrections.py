"""What is wrong in the benchmark's classes themselves, put right as a user of them would: in a subclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["CORRECTIONS", "Correction"]


@dataclass(frozen=True, slots=True)
class Correction:
    """A mistake of one class: a sentence about it, and the function that makes a right subclass."""

    api: str
    text: str
    apply: Callable[[Any], Any]
    only_long_context: bool = False

    def concerns(self, api: str, long_context: bool) -> bool:
        """Return whether a conversation with this class can come upon the mistake."""
        return api == self.api and (long_context or not self.only_long_context)


def _with_text_ids(published: Any) -> Any:
    class TicketAPI(published):
        def close_ticket(self, ticket_id: int | str) -> dict[str, str]:
            """Close a ticket.

            Args:
                ticket_id: ID of the ticket, a number or a text.
            """
            return super().close_ticket(ticket_id)

    return TicketAPI


def _with_text_dots(published: Any) -> Any:
    class TradingBot(published):
        def get_watchlist(self) -> Any:
            """Return the stock symbols of the watchlist."""
            found = super().get_watchlist()
            return ["..." if symbol is ... else symbol for symbol in found] if isinstance(found, list) else found

    return TradingBot


CORRECTIONS = (
    Correction(
        "TicketAPI",
        "close_ticket takes `ticket_id: int | str`: it declares int, and a conversation has the id 'ticket_001'",
        _with_text_ids,
    ),
    Correction(
        "TradingBot",
        "get_watchlist has '...' where an Ellipsis object, which has no JSON form, slipped in among its symbols",
        _with_text_dots,
        only_long_context=True,
    ),
)
