"""Limit of wrong tokens from one address."""

from __future__ import annotations

import time
from collections import OrderedDict, deque

__all__ = ["LoginLimit"]

_TRIES = 10
_SECONDS = 60.0
_MOST_ADDRESSES = 10_000  # that are remembered


class LoginLimit:
    """Counts wrong tokens by the address that they come from; ten in a minute are the most.

    Behind a proxy all visitors have its address. Browsers that are logged in are not affected.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Return the seconds until the address may try a token again; 0 when it may now."""
        tries = self._recent(address)
        return 0 if len(tries) < _TRIES else max(1, round(tries[0] + _SECONDS - time.monotonic()))

    def wrong(self, address: str) -> None:
        """Count a wrong token."""
        tries = self._recent(address)
        tries.append(time.monotonic())
        self._wrong[address] = tries
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def _recent(self, address: str) -> deque[float]:
        tries = self._wrong.get(address, deque[float](maxlen=_TRIES))
        while tries and tries[0] < time.monotonic() - _SECONDS:
            tries.popleft()
        return tries
