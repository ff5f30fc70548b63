"""Groups of people, by their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from toolcrib.errors import explain_options

__all__ = ["Groups", "Members"]

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

    Raises:
        ValueError: An id is of two people.
    """

    def __init__(
        self,
        members: Members | None = None,
        *,
        people: Mapping[str, Sequence[str]] | None = None,
        from_login: Sequence[str] = (),
    ) -> None:
        if isinstance(from_login, str):
            raise TypeError(f"Groups: from_login is a list of groups, as in from_login=[{from_login!r}]")
        self._members: Members = dict[str, Sequence[str]]() if members is None else members
        self.from_login = tuple(from_login)
        self._ids: dict[str, tuple[str, ...]] = {}
        for name, more in (people or {}).items():
            for one in (ids := tuple(dict.fromkeys((name, *more)))):
                if one in self._ids:
                    raise ValueError(f"Groups: {one} is an id of {self._ids[one][0]}, and of {name}: give it to one")
                self._ids[one] = ids

    def ids_of(self, one: str) -> tuple[str, ...]:
        """Return all ids of the person with an id."""
        return self._ids.get(one, (one,))

    def people_in(self, group: str) -> tuple[tuple[str, ...], ...]:
        """Return the people of a group, each once, as their ids."""
        found = self._members(group) if callable(self._members) else self._members.get(group, ())
        if isinstance(found, str):
            raise TypeError(f"Groups: the members of {group} are a list of ids, as in [{found!r}]")
        return tuple(dict.fromkeys(self.ids_of(one) for one in found))

    def is_known(self, group: str) -> bool:
        """Return whether there may be such a group; a function may know any."""
        return callable(self._members) or group in self._members or group in self.from_login
