"""Results as another server sent them, for an adapter that passes them on."""

from __future__ import annotations

from typing import Any


class OriginalResults:
    """The results of the calls of one request as other servers sent them, beside the values that were made of them.

    An adapter puts it in `Run.provide` under its class; a tool of another server fills it in.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Any, Any]] = {}

    def keep(self, call_id: str, value: Any, original: Any) -> None:
        """Keep the result that the value of a call was made from."""
        self._kept[call_id] = value, original

    def of(self, call_id: str, value: Any) -> Any:
        """Return the result that a call's value was delivered of; None where it is another value by now."""
        delivered, original = self._kept.get(call_id, (None, None))
        return original if delivered is value else None
