"""Groups of people, by their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from toolcrib.calls import Delegation
from toolcrib.errors import explain_options

Members: TypeAlias = Mapping[str, Sequence[str]] | Callable[[str], Iterable[str]]
"""The people of each group, or a function that returns those of a group, such as one that asks a directory."""


@explain_options()
class Groups:
    """The groups of people: from a mapping, a function, and what logins say.

    Args:
        members: The people of each group, by their ids. A function is asked anew for each call; what it raises fails
            the call.
        people: The ids of one person, by one of them: `{"ann": ["ann@example.org", "U024BE7LH"]}`. Whichever of them
            they show, they are one person.
        from_login: The groups that logins say: who is in them is known when they answer.
        delegations: Who gave their right to answer to whom, and until when: that of the groups that list them, not of
            those of a login.

    Raises:
        ValueError: An id is of two people, a right is given by one who has none, or it comes back to who gave it.
    """

    def __init__(
        self,
        members: Members | None = None,
        *,
        people: Mapping[str, Sequence[str]] | None = None,
        from_login: Sequence[str] = (),
        delegations: Sequence[Delegation] = (),
    ) -> None:
        if members is not None and not (callable(members) or isinstance(members, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"Groups: members is {members!r:.80}; give them by group: Groups({{'finance': ['ann']}})")
        if isinstance(from_login, str):
            raise TypeError(f"Groups: from_login must be a list of groups, as in from_login=[{from_login!r}]")
        self._members: Members = dict[str, Sequence[str]]() if members is None else members
        self.from_login = tuple(from_login)
        self._ids: dict[str, tuple[str, ...]] = {}
        for name, more in (people or {}).items():
            for id in (ids := tuple(dict.fromkeys((name, *more)))):
                if id in self._ids:
                    raise ValueError(f"Groups: {id} is an id of {self._ids[id][0]}, and of {name}: give it to one")
                self._ids[id] = ids
        if isinstance(delegations, Delegation):
            raise TypeError("Groups: delegations must be a list, as in delegations=[Delegation(...)]")
        self.delegations = tuple(delegations)
        for delegation in self.delegations:
            self._require_right(delegation)
            self._refuse_circle([delegation], set())

    def ids_of(self, one: str) -> tuple[str, ...]:
        """Return all ids of the person with an id."""
        return self._ids.get(one, (one,))

    def people_in(self, group: str) -> tuple[tuple[str, ...], ...]:
        """Return the people of a group, each once, as their ids."""
        found = self._members(group) if callable(self._members) else self._members.get(group, ())
        if isinstance(found, str):
            raise TypeError(f"Groups: the members of {group} are a list of ids, as in [{found!r}]")
        return tuple(dict.fromkeys(self.ids_of(id) for id in found))

    def is_known(self, group: str) -> bool:
        """Return whether there may be such a group; a function may know any."""
        return callable(self._members) or group in self._members or group in self.from_login

    def aliases(self, delegations: Iterable[Delegation]) -> tuple[tuple[str, ...], ...]:
        """Return the ids of the people in delegations who have several."""
        found = (self.ids_of(person) for delegation in delegations for person in (delegation.person, delegation.to))
        return tuple(dict.fromkeys(ids for ids in found if len(ids) > 1))

    def _require_right(self, given: Delegation) -> None:
        """Raise ValueError for a right that is given by one who has none, as far as the groups are listed."""
        if callable(self._members):
            return
        ids = self.ids_of(given.person)
        listed = {id for people in self._members.values() for id in people}
        if not listed.union(delegation.to for delegation in self.delegations) & {*ids}:
            raise ValueError(
                f"Groups: the delegation of {given.person} to {given.to}: no group lists {given.person}, who has no "
                "right to give; write the id as the groups have it"
            )

    def _refuse_circle(self, chain: list[Delegation], seen: set[tuple[Delegation, datetime | None, datetime]]) -> None:
        """Raise ValueError where a right that is given on comes back, at a time when all of a chain hold.

        Args:
            chain: The delegations from the first one on.
            seen: The last ones of chains from it that were looked at, with the times in which all of them hold.
        """
        since = [delegation.since for delegation in chain if delegation.since is not None]
        begins, ends = max(since, default=None), min(delegation.until for delegation in chain)
        if (begins is not None and begins >= ends) or (chain[-1], begins, ends) in seen:
            return
        seen.add((chain[-1], begins, ends))
        first, last = self.ids_of(chain[0].person), self.ids_of(chain[-1].to)
        if {*first} & {*last}:
            names = [chain[0].person, *(delegation.to for delegation in chain)]
            way = "to themselves" if len(chain) == 1 else f"in a circle: {', '.join(names)}"
            raise ValueError(f"Groups: the delegation of {names[0]} to {names[1]} goes {way}; take one out")
        for delegation in self.delegations:
            if delegation.person in last and delegation not in chain:
                self._refuse_circle([*chain, delegation], seen)
