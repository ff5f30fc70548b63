"""Place of a session in an approval store: who works on it, and what was saved of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from toolcrib.approvals import ApprovalStore, KeepsSessions, SavedSession, SqlApprovalStore, SqliteApprovalStore
from toolcrib.errors import RoundError
from toolcrib.pipeline import Run


class SessionKeeper:
    """Place of one session in a store.

    Attributes:
        store: The store, which has the requests and executions of the session's calls as well.
        id: The host's id for the session.
        is_loaded: Whether the session has what was in the store; nothing is saved before.
    """

    def __init__(self, store: KeepsSessions, id: str) -> None:
        self.store, self.id, self.is_loaded = store, id, False
        self._number = 0
        self._state = ""

    def __str__(self) -> str:
        """The id of the session, and where it is kept."""
        return f"{self.id!r} in {self.store.place if isinstance(self.store, SqlApprovalStore) else repr(self.store)}"

    @asynccontextmanager
    async def claim(self) -> AsyncGenerator[None]:
        """Claim the session while the body works on it, by the claims of the store.

        Raises:
            RoundError: Another process or task works on it.
        """
        key = f"session:{self.id}"
        found = await self.store.claim(key)
        if found is not None:
            since = found.begun_at.isoformat(timespec="seconds")
            raise RoundError((f"the session {self.id!r} is worked on since {since}, by another process or task",))
        try:
            yield
        finally:
            await asyncio.shield(asyncio.ensure_future(self.store.release(key, ended=False)))

    async def load(self) -> SavedSession | None:
        """Return the session as it was saved last, or None; None, too, if it was loaded before.

        Raises:
            RoundError: Another process went on with the session after it was loaded here, or deleted it.
        """
        found = await self.store.load_session(self.id)
        number = 0 if found is None else found.number
        if self.is_loaded:
            if number != self._number:
                raise self._outdated()
            return None
        self._number, self._state = number, "" if found is None else found.state
        return found

    async def save(self, state: str, *, is_open: bool) -> None:
        """Write the session in place of what was saved of it, in one transaction.

        Raises:
            RoundError: Another process went on with the session after it was loaded here, or deleted it.
        """
        if state == self._state:
            return
        if not await self.store.save_session(SavedSession(self.id, self._number + 1, state, is_open)):
            raise self._outdated()
        self._number, self._state = self._number + 1, state

    async def delete(self) -> bool:
        """Remove the session; return whether there was one."""
        self._number, self._state = 0, ""
        return await self.store.delete_session(self.id)

    def _outdated(self) -> RoundError:
        mend = "make `Session(..., id=...)` again, which has the stored turns"
        return RoundError((f"another process went on with the session {self.id!r}, or deleted it: {mend}",))


def session_keeper(store: ApprovalStore | str | Path | None, id: str, run: Run | None) -> SessionKeeper | None:
    """Return the place of a session in a store, or in the SQLite file of this path; None where it has neither.

    Raises:
        TypeError: The store keeps no sessions.
        ValueError: One of store and id is missing or no text, the path is a URL, or the run has another store.
    """
    if store is None and not id:
        return None
    if store is None or not id:
        raise ValueError("a session that is kept needs both: `store=`, and an `id=` that no other session has")
    if not isinstance(cast("object", id), str) or not id.isprintable():
        raise ValueError(f"the id of a session is printable text, and this is {id!r:.80}")
    if isinstance(store, str | Path):
        if "://" in str(store).removeprefix("sqlite:///"):
            raise ValueError("the path of a store is a URL: give `store=PostgresApprovalStore(url)`")
        store = SqliteApprovalStore(store)
    if not isinstance(store, KeepsSessions):
        raise TypeError(
            f"{type(store).__name__} keeps no sessions: give a SqliteApprovalStore, or another of toolcrib's"
        )
    if run is not None and run.approvals not in (None, store):
        raise ValueError("the run has an approval store of its own: give that one as `store=`, or the run without it")
    return SessionKeeper(store, id)
