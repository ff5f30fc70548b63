"""Sessions with a model in an approval store, beside the requests and executions of their calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from toolcrib.calls import now


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session in a store.

    Attributes:
        id: The host's id for it.
        number: How often it has been saved; of two processes that save the same number, one does.
        state: The session as JSON text; it holds the real arguments of its calls.
        is_open: Whether a round of it waits for a person, or was under way when it was saved.
        saved_at: When it was saved.
    """

    id: str
    number: int
    state: str = field(repr=False)
    is_open: bool = False
    saved_at: datetime = field(default_factory=now)
